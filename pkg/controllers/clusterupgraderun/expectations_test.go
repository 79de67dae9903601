// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// observe checks the invariants of each stored object, and lets the agent answer works.
func (w *world) observe(change simulation.Change) {
	if work, ok := change.Old.(*workv1.ManifestWork); ok && change.New == nil {
		w.spoke.Delete(work)
	}
	switch object := change.New.(type) {
	case *workv1.ManifestWork:
		before, _ := change.Old.(*workv1.ManifestWork)
		if change.Actor == "hub" && object.DeletionTimestamp.IsZero() && (before == nil || before.Generation != object.Generation) {
			w.seen[object.Name+" "+object.Annotations[delivery.Annotation]]++
		}
		if change.Actor != "agent" {
			w.wakeAgent(10 * time.Second)
		}
	case *fleetv1alpha1.ClusterUpgradeRun:
		w.observeRun(object)
	}
	observeInvariants(w.World, &w.invariants, change)
}

// observeInvariants checks the invariants of an upgrade or a run that the hub has stored.
func observeInvariants(w *simulation.World, checked *invariants.Fleet, change simulation.Change) {
	var violated error
	byHub := change.Actor == "hub"
	switch object := change.Object().(type) {
	case *fleetv1alpha1.ClusterUpgradeRun:
		switch {
		case change.New == nil:
			checked.RunDeleted(object)
		case byHub:
			violated = checked.Run(object)
		default:
			checked.Note(object)
		}
	case *fleetv1beta1.ManagedClustersUpgrade:
		if byHub && change.New != nil {
			violated = checked.Upgrade(object)
		}
	}
	if violated != nil {
		w.Fail(violated)
	}
}

func (w *world) observeRun(run *fleetv1alpha1.ClusterUpgradeRun) {
	if s := string(run.Status.State); s != "" && (len(w.states) == 0 || w.states[len(w.states)-1] != s) {
		w.states = append(w.states, s)
	}
	if run.Status.Reason == fleetv1alpha1.ReasonStalled {
		w.stalled++
	}
}

func (w *world) upgrade() *fleetv1beta1.ManagedClustersUpgrade {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: "fleet", Name: "stores"}, &fleetv1beta1.ManagedClustersUpgrade{})
}

// run returns the run; nil if there is none.
func (w *world) run() *fleetv1alpha1.ClusterUpgradeRun {
	w.TB.Helper()
	return simulation.Find(w.Harness, client.ObjectKey{Namespace: cluster, Name: "stores-1a2b3c4d"}, &fleetv1alpha1.ClusterUpgradeRun{})
}

// work returns a work; nil if there is none.
func (w *world) work(name string) *workv1.ManifestWork {
	w.TB.Helper()
	return simulation.Find(w.Harness, client.ObjectKey{Namespace: cluster, Name: name}, &workv1.ManifestWork{})
}

// form returns the attempt and the form of the work of the platform; empty without one.
func (w *world) form() string {
	w.TB.Helper()
	if work := w.work(upgradeWork); work != nil {
		return work.Annotations[delivery.Annotation]
	}
	return ""
}

func isTerminal(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Attempt == run.Spec.Attempt &&
		(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
}

func (w *world) describe() string {
	run := w.run()
	if run == nil {
		return "no run"
	}
	var steps []string
	for _, c := range run.Record().Conditions {
		steps = append(steps, fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return fmt.Sprintf("%s %s: %s\nwork %q, history %v\n%s", run.Status.State, run.Status.Reason, run.Status.Message, w.form(), w.spoke.History(), strings.Join(steps, "\n"))
}

// expect compares the state and its reason.
func (w *world) expect(state fleetv1alpha1.ClusterUpgradeState, reason string) {
	w.TB.Helper()
	if run := w.run(); run == nil || run.Status.State != state || run.Status.Reason != reason {
		w.TB.Errorf("want %s %s, got %s", state, reason, w.describe())
	}
}

// expectReleased checks that nothing holds the cluster.
func (w *world) expectReleased() {
	w.TB.Helper()
	if lease := simulation.Find(w.Harness, leaseKey, &coordinationv1.Lease{}); lease != nil {
		w.TB.Errorf("the Lease exists: %v", lease.Spec.HolderIdentity)
	}
}

// expectQuiet checks that an ended run makes no request, that nothing is locked, and that each work was
// written once in each form.
func (w *world) expectQuiet() {
	w.TB.Helper()
	w.expectReleased()
	w.Requests = nil
	w.RunFor(24 * time.Hour)
	if len(w.Requests) > 0 {
		w.TB.Errorf("requests of a run that has ended: %v", w.Requests)
	}
	for name, times := range w.seen {
		if times > 1 {
			w.TB.Errorf("work %s was written %d times", name, times)
		}
	}
}

// expectUntouched checks that the platform of the cluster is not upgraded, and that no upgrade is
// requested.
func (w *world) expectUntouched() {
	w.TB.Helper()
	if desired, history := w.spoke.Desired(), w.spoke.History(); desired != "" || len(history) != 1 {
		w.TB.Errorf("%q is requested, history %v", desired, history)
	}
}

// expectNoWorks checks that no work is left.
func (w *world) expectNoWorks() {
	w.TB.Helper()
	works := simulation.List(w.Harness, &workv1.ManifestWorkList{})
	for i := range works.Items {
		w.TB.Errorf("work %s is left", works.Items[i].Name)
	}
}
