// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devtest starts parts of a dev cluster for a test and checks that no processes are left
// behind. It also starts a real API server for tests of API kinds.
//
// It does not know what is being tested.
package devtest

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// startTimeout limits the start of a part.
const startTimeout = time.Minute

// Part is a running part of a dev cluster.
type Part interface {
	// Stop stops its processes. It may be called more than once.
	Stop() error
	// PIDs returns the IDs of its running processes by name.
	PIDs() map[string]int
}

// Start starts a part and stops it at the end of the test.
func Start[P Part](tb testing.TB, start func(context.Context) (P, error)) P {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	startTime := time.Now()
	running, err := start(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("ready after %s", time.Since(startTime).Round(time.Millisecond))
	tb.Cleanup(func() {
		if err := running.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return running
}

// StartMonitoring starts a real Prometheus and Alertmanager for the test.
func StartMonitoring(tb testing.TB, spec alerting.Spec) *monitoring.Monitoring {
	tb.Helper()
	options := monitoring.Options{Dir: tb.TempDir(), Spec: spec, OnExit: func(err error) { tb.Error(err) }}
	return Start(tb, func(ctx context.Context) (*monitoring.Monitoring, error) { return monitoring.Start(ctx, options) })
}

// CheckStop stops a part twice and fails unless all of its processes have exited.
func CheckStop(tb testing.TB, running Part, processes int) {
	tb.Helper()
	pids := running.PIDs()
	if len(pids) != processes {
		tb.Fatalf("%d processes, want %d: %v", len(pids), processes, pids)
	}
	if err := running.Stop(); err != nil {
		tb.Fatal(err)
	}
	for name, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			tb.Errorf("%s, process %d, is left: %v", name, pid, err)
		}
	}
	if left := running.PIDs(); len(left) != 0 {
		tb.Errorf("processes that have ended: %v", left)
	}
	if err := running.Stop(); err != nil {
		tb.Errorf("stopping again: %v", err)
	}
}
