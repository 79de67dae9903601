// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// observe checks the invariants of each stored object, and has the agent answer each run.
func (w *world) observe(change simulation.Change) {
	switch object := change.New.(type) {
	case *fleetv1alpha1.ClusterUpgradeRun:
		before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
		if before == nil || before.Spec.Attempt != object.Spec.Attempt {
			w.observeAdmission(object)
		}
		if !object.DeletionTimestamp.IsZero() {
			w.After(0, func() { w.release(object) })
		}
	case *fleetv1beta1.ManagedClustersUpgrade:
		w.observeStatus(change, object)
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

// observeStatus checks the invariants of a status.
func (w *world) observeStatus(change simulation.Change, u *fleetv1beta1.ManagedClustersUpgrade) {
	before, _ := change.Old.(*fleetv1beta1.ManagedClustersUpgrade)
	if before == nil || change.Actor != "hub" || u.Status.ClustersSummery == nil {
		return
	}
	w.published = append(w.published, change.Time)
	s := u.Status.ClustersSummery
	w.maxFlight = max(w.maxFlight, s.Initialized+s.PartialUpgrade)
	conditions := u.Status.Conditions
	switch {
	case s.Initialized+s.PartialUpgrade+s.Complete+s.Failed+s.Pending != s.Total:
		w.Fail(fmt.Errorf("states do not sum up: %+v", s))
	case apimeta.IsStatusConditionTrue(conditions, "Complete") && apimeta.IsStatusConditionTrue(conditions, "Failed"):
		w.Fail(errors.New("both Complete and Failed"))
	}
	if before.Status.ClustersSummery != nil {
		w.observeProgress(before, u)
	}
}

// observeProgress checks the invariants of two statuses, one after the other: slots are not exceeded,
// and nothing is admitted after a stop.
func (w *world) observeProgress(before, u *fleetv1beta1.ManagedClustersUpgrade) {
	was, is := before.Status.ClustersSummery, u.Status.ClustersSummery
	limit := int32(1)
	if n := u.Spec.UpgradeStrategy.MaxConcurrency; n != nil && n.Type == intstr.Int {
		limit = n.IntVal
	}
	flight := is.Initialized + is.PartialUpgrade
	if flight > max(limit, was.Initialized+was.PartialUpgrade) {
		w.Fail(fmt.Errorf("%d clusters in flight, %d before, and %d slots", flight, was.Initialized+was.PartialUpgrade, limit))
	}
	for _, status := range []fleetv1beta1.ManagedClustersUpgradeStatus{before.Status, u.Status} {
		c := apimeta.FindStatusCondition(status.Conditions, fleetv1beta1.ConditionAdmitting)
		if c == nil || !slices.Contains(permanentStops, c.Reason) {
			return
		}
	}
	if before.Status.Attempt == u.Status.Attempt && is.Total >= was.Total && is.Pending < was.Pending {
		w.Fail(fmt.Errorf("%d clusters were pending when the rollout had stopped, and %d are now", was.Pending, is.Pending))
	}
}

// permanentStops are the reasons that stop a rollout until its next attempt.
var permanentStops = []string{
	fleetv1beta1.ReasonCanaryFailed, fleetv1beta1.ReasonMaxFailuresExceeded, fleetv1beta1.ReasonCancelled, fleetv1beta1.ReasonRecordsLost,
}
