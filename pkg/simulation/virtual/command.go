// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

// UpdateProgram runs kubectl-update with arguments on an in-memory cluster and returns its exit
// code. alerts may be nil.
type UpdateProgram func(ctx context.Context, args []string, c client.Client, alerts checks.AlertSource, clk clock.Clock, out io.Writer) int

// Command runs a command. Virtual time passes while kubectl-update waits; other commands take no
// time.
func (w *World) Command(ctx context.Context, wait func(time.Duration) bool, words []string) (scenario.CommandResult, error) {
	if words[1] != "update" {
		if err := w.Cluster.Command(ctx, words[1:]); err != nil {
			return scenario.CommandResult{Printed: err.Error(), ExitCode: 1}, nil //nolint:nilerr // as oc reports it
		}
		return scenario.CommandResult{}, nil
	}
	if w.update == nil {
		return scenario.CommandResult{}, errors.New("this world has no kubectl-update")
	}
	if err := w.renewLease(ctx); err != nil {
		return scenario.CommandResult{}, err
	}
	var printed bytes.Buffer
	clk := scriptClock{now: w.simulation.Clock(), wait: wait}
	code := w.update(ctx, words[2:], w.Objects(), w.alerts, clk, &printed)
	return scenario.CommandResult{Printed: printed.String(), ExitCode: code}, nil
}

// renewLease renews the Lease of the Update Status Controller if it is running, as if it took part
// in leader election.
func (w *World) renewLease(ctx context.Context) error {
	if w.statusController == nil || !w.statusController.Alive() {
		return nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: openshiftsim.OperatorNamespace, Name: statuscontroller.Component + "-leader"}}
	_, err := controllerutil.CreateOrUpdate(ctx, w.Cluster.Client, lease, func() error {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: w.Now()}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renewing the Lease of the Update Status Controller: %w", err)
	}
	return nil
}

// Create creates an object. For a SelfSubjectReview, it returns the name of the administrator.
func (a administrator) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if review, is := obj.(*authenticationv1.SelfSubjectReview); is {
		review.Status.UserInfo.Username = "administrator"
		return nil
	}
	return a.Client.Create(ctx, obj, opts...)
}

// scriptClock is a clock whose timers make the calling script wait.
type scriptClock struct {
	clock.Clock
	now  *simulation.Clock
	wait func(time.Duration) bool
}

// Now returns the virtual time.
func (c scriptClock) Now() time.Time { return c.now.Now() }

// Since returns the virtual time elapsed since t.
func (c scriptClock) Since(t time.Time) time.Duration { return c.now.Since(t) }

// After waits and returns a channel with the time, or nil if the run has ended.
func (c scriptClock) After(d time.Duration) <-chan time.Time {
	if !c.wait(d) {
		return nil
	}
	passed := make(chan time.Time, 1)
	passed <- c.Now()
	return passed
}
