// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a real Prometheus and a real Alertmanager as child processes on free
// loopback ports. Alerts are fired and resolved on demand: Prometheus evaluates generated rules
// once a second.
//
// It does not know Kubernetes, and scrapes only the addresses that it is given.
package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// Options configure Monitoring.
type Options struct {
	// BinDir is the folder with prometheus and alertmanager. It defaults to the bin folder of the Go
	// module of the working directory.
	BinDir string
	// Dir is the folder for data, configuration, and logs. It may be the folder of a control plane. It
	// is created if missing, and files from an earlier run are removed.
	Dir string
	// Spec describes the initial state.
	Spec alerting.Spec
	// OnExit, if set, is called when a process ends unexpectedly.
	OnExit func(error)
}

// Monitoring is a running Prometheus that sends alerts to a running Alertmanager. Its methods are
// safe for concurrent use.
type Monitoring struct {
	options Options

	mu           sync.Mutex // serializes starts, stops, and changes of alerts
	prometheus   server
	alertmanager server
	alerts       []alerting.Alert // firing alerts
	scraped      []string
}

// Start returns when both are ready and the alerts of the Spec are firing. The context limits only
// the start; call Stop to stop both.
func Start(ctx context.Context, options Options) (*Monitoring, error) {
	if allErrs := options.Spec.Validate(nil); len(allErrs) > 0 {
		return nil, fmt.Errorf("describing the monitoring: %w", allErrs.ToAggregate())
	}
	if options.BinDir == "" {
		dir, err := controlplane.FindBinDir()
		if err != nil {
			return nil, err
		}
		options.BinDir = dir
	}
	if err := controlplane.RequireBuilt(options.BinDir, "make bin/prometheus bin/alertmanager", "prometheus", "alertmanager"); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("finding the state folder: %w", err)
	}
	options.Dir = dir
	m := &Monitoring{options: options, alerts: []alerting.Alert{watchdog()}}
	for _, alert := range options.Spec.Alerts {
		m.alerts = addAlert(m.alerts, alert)
	}
	if err := m.start(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

func (m *Monitoring) start(ctx context.Context) error {
	if err := os.MkdirAll(m.path("logs"), 0o750); err != nil {
		return fmt.Errorf("creating the folder of the logs: %w", err)
	}
	for _, each := range []struct {
		name   string
		server *server
	}{{"prometheus", &m.prometheus}, {"alertmanager", &m.alertmanager}} {
		if err := os.RemoveAll(m.path(each.name)); err != nil {
			return fmt.Errorf("clearing the state folder: %w", err)
		}
		if err := os.MkdirAll(m.path(each.name), 0o750); err != nil {
			return fmt.Errorf("creating the state folder: %w", err)
		}
		port, err := controlplane.FreePort()
		if err != nil {
			return err
		}
		each.server.address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	if err := m.StartAlertmanager(ctx); err != nil { // first, to receive every alert
		return err
	}
	return m.StartPrometheus(ctx)
}

// PrometheusURL returns the URL of Prometheus. It never changes.
func (m *Monitoring) PrometheusURL() string { return m.prometheus.url() }

// AlertmanagerURL returns the URL of Alertmanager. It never changes.
func (m *Monitoring) AlertmanagerURL() string { return m.alertmanager.url() }

// PIDs returns the process IDs of the running programs by name.
func (m *Monitoring) PIDs() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	pids := map[string]int{}
	for name, process := range map[string]*childprocess.Process{"prometheus": m.prometheus.process, "alertmanager": m.alertmanager.process} {
		if process.Running() {
			pids[name] = process.PID()
		}
	}
	return pids
}

// Stop stops both. It may be called more than once.
func (m *Monitoring) Stop() error {
	return errors.Join(m.StopPrometheus(), m.StopAlertmanager())
}

func (m *Monitoring) path(elements ...string) string {
	return filepath.Join(append([]string{m.options.Dir}, elements...)...)
}

// watchdog always fires. If it is missing, Prometheus is not evaluating its rules.
func watchdog() alerting.Alert {
	return alerting.Alert{Name: "Watchdog", Labels: map[string]string{"severity": "none", "namespace": "openshift-monitoring"}}
}
