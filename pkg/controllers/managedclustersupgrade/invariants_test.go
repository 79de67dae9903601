// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// observe checks the invariants of each stored object, and has the agent answer each run.
func (w *world) observe(change simulation.Change) {
	w.observeRun(change)
	switch object := change.New.(type) {
	case *fleetv1alpha1.ClusterUpgradeRun:
		before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
		if change.Actor != "hub" {
			return
		}
		if invariants.Begins(before, object) {
			w.observeAdmission(object)
		}
		if !object.DeletionTimestamp.IsZero() {
			w.After(0, func() { w.release(object) })
		}
	case *fleetv1beta1.ManagedClustersUpgrade:
		w.observeStatus(change, object)
	case *corev1.Event:
		w.written = append(w.written, object.Type+" "+object.Reason)
	}
}

// observeAdmission checks that a cluster begins once in an attempt, and starts its upgrade.
func (w *world) observeAdmission(run *fleetv1alpha1.ClusterUpgradeRun) {
	key := fmt.Sprintf("%s/%s/%d", run.Spec.ManagedClustersUpgrade.UID, run.Namespace, run.Spec.Attempt)
	if w.admissions[key]++; w.admissions[key] > 1 && !w.detachable {
		w.Fail(fmt.Errorf("%s was admitted %d times", key, w.admissions[key]))
	}
	w.order = append(w.order, run.Namespace)
	if ref := run.Spec.ManagedClustersUpgrade; ref.Name == stores.Name && ref.Namespace == stores.Namespace && w.get().Status.StartTime == nil {
		w.Fail(fmt.Errorf("%s was admitted before the start was recorded", run.Namespace))
	}
	if run.Spec.Outcome != nil {
		w.After(time.Minute, func() { w.setState(run, run.Spec.Outcome.State, run.Spec.Outcome.Reason) })
		return
	}
	takes := 40 * time.Minute
	if w.slow[run.Namespace] {
		takes *= 4
	}
	w.After(time.Minute, func() { w.setState(run, fleetv1alpha1.StateInitialized, "Delivered") })
	w.After(5*time.Minute, func() { w.setState(run, fleetv1alpha1.StatePartialUpgrade, "Upgrading") })
	w.After(takes, func() {
		if w.fails[run.Namespace] > 0 {
			w.fails[run.Namespace]--
			w.setState(run, fleetv1alpha1.StateFailed, "ClusterVersionFailing")
			return
		}
		w.setState(run, fleetv1alpha1.StateComplete, "Upgraded")
	})
}

// observeStatus checks the invariants of a status that the hub has written.
func (w *world) observeStatus(change simulation.Change, u *fleetv1beta1.ManagedClustersUpgrade) {
	if change.Old == nil || change.Actor != "hub" || u.Status.ClustersSummery == nil {
		return
	}
	w.published = append(w.published, change.Time)
	s := u.Status.ClustersSummery
	w.maxFlight = max(w.maxFlight, s.InFlight()+s.Finishing)
	w.check(w.invariants.Upgrade(u))
}

// observeRun checks the invariants of a run.
func (w *world) observeRun(change simulation.Change) {
	run, is := change.Object().(*fleetv1alpha1.ClusterUpgradeRun)
	switch {
	case !is:
	case change.New == nil:
		w.invariants.RunDeleted(run)
	case change.Actor == "hub":
		w.check(w.invariants.Run(run))
		before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
		if u := simulation.Find(w.Harness, stores, &fleetv1beta1.ManagedClustersUpgrade{}); u != nil {
			w.check(w.invariants.AfterStop(u, before, run))
		}
	default:
		w.invariants.Note(run)
	}
}

// check ends the test unless the error of an invariant is nil.
func (w *world) check(violated error) {
	if violated != nil {
		w.Fail(violated)
	}
}
