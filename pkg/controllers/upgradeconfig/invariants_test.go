// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// invariants checks each write of the operator.
type invariants struct {
	t                 testing.TB
	requestedVersions []string       // requested from the cluster version operator, "" to withdraw
	completions       map[string]int // of steps, by their attempt
	reconciles        int
	errors            []error
	foreign           bool // another client has written the history
}

func (i *invariants) observe(change simulation.Change) {
	if change.Actor != "operator" || change.Old == nil || change.New == nil {
		return
	}
	switch updated := change.New.(type) {
	case *configv1.ClusterVersion:
		i.observeVersion(change.Old.(*configv1.ClusterVersion).Spec.DesiredUpdate, updated.Spec.DesiredUpdate)
	case *upgradev1alpha1.UpgradeConfig:
		if i.foreign {
			return
		}
		i.observeHistory(updated.Namespace, change.Old.(*upgradev1alpha1.UpgradeConfig).Status.History, updated.Status.History)
	}
}

func (i *invariants) observeVersion(old, updated *configv1.Update) {
	if reflect.DeepEqual(old, updated) {
		return
	}
	requested := ""
	if updated != nil {
		requested = updated.Version
	}
	i.requestedVersions = append(i.requestedVersions, requested)
}

// observeHistory checks that the history is bounded and that nothing finished is written again.
func (i *invariants) observeHistory(namespace string, old, updated []history.Record) {
	if len(updated) > lifecycle.ByVersion.Limit() {
		i.t.Errorf("the history has %d elements", len(updated))
	}
	for _, record := range updated {
		anytime := func(r history.Record) history.Record { // when the result was published is recorded later
			r.NotifiedTime = nil
			return r
		}
		before := slices.IndexFunc(old, func(r history.Record) bool { return r.Version == record.Version && r.Attempt == record.Attempt })
		if before >= 0 && isFinished(old[before]) && !reflect.DeepEqual(anytime(old[before]), anytime(record)) {
			i.t.Errorf("the finished attempt is written again:\n%+v\n%+v", old[before], record)
		}
		for _, c := range record.Conditions {
			before := find(old, record.Version, record.Attempt, c.Type)
			switch {
			case before != nil && before.CompleteTime != nil && !reflect.DeepEqual(*before, c):
				i.t.Errorf("the finished step %s is written again:\n%+v\n%+v", c.Type, *before, c)
			case c.CompleteTime != nil && (before == nil || before.CompleteTime == nil):
				i.completions[fmt.Sprintf("%s/%s %d %s", namespace, record.Version, record.Attempt, c.Type)]++
			}
		}
	}
}

// reconciled checks the result of a reconcile.
func (i *invariants) reconciled(_ reconcile.Request, result reconcile.Result, err error) {
	i.reconciles++
	if err != nil {
		i.errors = append(i.errors, err)
	}
	if result.RequeueAfter < 0 || result.RequeueAfter > maxRequeue {
		i.t.Errorf("the next reconcile is requested in %s", result.RequeueAfter)
	}
}

// watched is an upgrader whose steps must not be called once the API server has stored that they
// are finished.
type watched struct {
	w        *world
	upgrader upgraders.ClusterUpgrader
}

func (u watched) Runbook(attempt upgraders.Attempt) engine.Runbook {
	book := u.upgrader.Runbook(attempt)
	for _, steps := range [][]engine.Step{book.Steps, book.Cleanup} {
		for i := range steps {
			do, name := steps[i].Do, steps[i].Name
			steps[i].Do = func(ctx context.Context, run engine.Run) (engine.Result, error) {
				var stored upgradev1alpha1.UpgradeConfig
				if u.w.User.Get(ctx, client.ObjectKeyFromObject(attempt.Config), &stored) == nil {
					c := find(stored.Status.History, attempt.Record.Version, attempt.Record.Attempt, name)
					if c != nil && c.CompleteTime != nil {
						u.w.TB.Errorf("the finished step %s is called again", name)
					}
				}
				return do(ctx, run)
			}
		}
	}
	return book
}

// find returns the condition of a step in an attempt; nil if there is none.
func find(all []history.Record, version string, attempt int32, step string) *history.StepCondition {
	for i := range all {
		for j := range all[i].Conditions {
			if all[i].Version == version && all[i].Attempt == attempt && all[i].Conditions[j].Type == step {
				return &all[i].Conditions[j]
			}
		}
	}
	return nil
}
