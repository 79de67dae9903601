// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Fleet checks the objects of a fleet. The objects of each kind must be passed in the order in
// which they were stored. The zero value is ready to use and safe for concurrent use.
type Fleet struct {
	// Interleaved indicates that two hubs with separate caches are running. A status may then be
	// stored after a run of the other hub without counting that run, or without knowing that it has
	// ended.
	Interleaved bool

	mu       sync.Mutex
	statuses map[types.UID]*fleetv1beta1.ManagedClustersUpgrade // the last status of each upgrade
	limits   map[types.UID]int32                                // the maximum limit of each upgrade since its last status
	runs     map[cluster]*fleetv1alpha1.ClusterUpgradeRun       // the last state of each run
	created  map[types.UID]uint64                               // the resource version of each run when it was first stored
	lateIn   map[cluster]int32                                  // the last attempt in which each cluster was upgraded late
	gone     map[string]int32                                   // the number of deleted runs, and of complete clusters that became canaries, by the UID of their upgrade
}

// cluster is a cluster in an upgrade.
type cluster struct{ upgrade, name string }

func clusterOf(run *fleetv1alpha1.ClusterUpgradeRun) cluster {
	return cluster{run.Spec.ManagedClustersUpgrade.UID, run.Namespace}
}

// Upgrade checks a stored upgrade. It must be called for the hub's status updates and may be called
// for other changes: clusters that started before the limit was lowered may be published later.
func (f *Fleet) Upgrade(upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.statuses == nil {
		f.statuses, f.limits = map[types.UID]*fleetv1beta1.ManagedClustersUpgrade{}, map[types.UID]int32{}
	}
	f.limits[upgrade.UID] = max(f.limits[upgrade.UID], limit(upgrade))
	if upgrade.Status.ClustersSummery == nil {
		return nil
	}
	before := f.statuses[upgrade.UID]
	if before == nil || !equality.Semantic.DeepEqual(before.Status, upgrade.Status) {
		f.statuses[upgrade.UID] = upgrade.DeepCopy()
	}
	if before == nil {
		before = &fleetv1beta1.ManagedClustersUpgrade{}
		before.Status.ClustersSummery = &fleetv1beta1.ClustersSummary{}
	}
	return errors.Join(Status(upgrade), f.progress(before, upgrade))
}

// progress checks two consecutive statuses: clusters do not start beyond the limit or after a stop,
// and started clusters are not dropped. Lowering the limit does not interrupt clusters.
func (f *Fleet) progress(before, upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	was, is := before.Status.ClustersSummery, upgrade.Status.ClustersSummery
	if upgrade.Status.ObservedGeneration == upgrade.Generation {
		former := *upgrade // clusters that started before a change of the spec may be counted after it
		former.Spec = before.Spec
		n := max(f.limits[upgrade.UID], limit(&former))
		switch {
		case !f.Interleaved:
			f.limits[upgrade.UID] = limit(upgrade)
		case !equality.Semantic.DeepEqual(before.Status, upgrade.Status): // the next status may be as old as the previous one
			f.limits[upgrade.UID] = max(limit(upgrade), inFlight(was))
		}
		if inFlight(is) > max(n, inFlight(was)) {
			return fmt.Errorf("%d clusters are in flight, after %d, and the limit is %d", inFlight(is), inFlight(was), n)
		}
	}
	if apimeta.IsStatusConditionTrue(before.Status.Conditions, fleetv1beta1.ConditionApplied) &&
		!apimeta.IsStatusConditionTrue(upgrade.Status.Conditions, fleetv1beta1.ConditionApplied) {
		return errors.New("condition Applied was True, and is not")
	}
	retried := int32(0) // clusters that were upgraded late are retried as well
	if before.Status.Attempt != upgrade.Status.Attempt {
		retried = f.late(upgrade, before.Status.Attempt)
	}
	if is.Complete < was.Complete-was.Finishing-f.gone[string(upgrade.UID)]-retried { // a cluster that is finishing may fail
		return fmt.Errorf("%d clusters are complete, and %d were, without %d that finished", is.Complete, was.Complete, was.Finishing)
	}
	if err := errors.Join(f.stop(before, upgrade), rest(before, upgrade)); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(before.Status, upgrade.Status) {
		return nil
	}
	return f.members(upgrade)
}

// members checks that a new status counts each cluster that started before it, including failed
// clusters that are no longer selected, unless a user has forgotten the failure. Statuses that
// report that the hub cannot count are not checked.
func (f *Fleet) members(upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	if f.Interleaved || hasReason(&upgrade.Status, fleetv1beta1.ReasonCannotObserve, fleetv1beta1.ReasonDeleting) {
		return nil
	}
	var begun int32
	for of, run := range f.runs {
		if of.upgrade == string(upgrade.UID) && hasBegun(upgrade, run) && f.created[run.UID] < version(upgrade) {
			begun++
		}
	}
	if counted := upgrade.Status.ClustersSummery.Total - upgrade.Status.ClustersSummery.Pending; counted < begun {
		return fmt.Errorf("%d clusters are counted as begun, and %d have begun", counted, begun)
	}
	return nil
}

// version returns the resource version. It orders objects of all kinds.
func version(object metav1.Object) uint64 {
	n, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Run checks a run stored by the hub.
func (f *Fleet) Run(run *fleetv1alpha1.ClusterUpgradeRun) error {
	before := f.Note(run)
	if before == nil || before.UID != run.UID {
		if before != nil {
			return fmt.Errorf("cluster %s has a second run", run.Namespace)
		}
		return steps(run)
	}
	return errors.Join(attempts(before, run), states(before, run), steps(run))
}

// Note records a run stored by another client without checking it. It returns the previous state of
// the run, or nil for a new run.
func (f *Fleet) Note(run *fleetv1alpha1.ClusterUpgradeRun) *fleetv1alpha1.ClusterUpgradeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs, f.created, f.gone = map[cluster]*fleetv1alpha1.ClusterUpgradeRun{}, map[types.UID]uint64{}, map[string]int32{}
		f.lateIn = map[cluster]int32{}
	}
	if isLate(run) {
		f.lateIn[clusterOf(run)] = max(1, run.Status.Attempt)
	}
	if _, known := f.created[run.UID]; run.Spec.AdmissionTime.IsZero() {
		delete(f.created, run.UID)
	} else if !known {
		f.created[run.UID] = version(run)
	}
	before := f.runs[clusterOf(run)]
	if before != nil && becomesCanary(before, run) {
		f.gone[run.Spec.ManagedClustersUpgrade.UID]++
	}
	f.runs[clusterOf(run)] = run.DeepCopy()
	return before
}

// RunDeleted records the deletion of a run.
func (f *Fleet) RunDeleted(run *fleetv1alpha1.ClusterUpgradeRun) {
	f.Note(run)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.runs, clusterOf(run))
	if !run.Spec.AdmissionTime.IsZero() {
		delete(f.lateIn, clusterOf(run))
		f.gone[run.Spec.ManagedClustersUpgrade.UID]++
	}
}

// becomesCanary reports whether a user has made a complete cluster a canary of a new attempt.
func becomesCanary(before, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	wasComplete := before.Status.State == fleetv1alpha1.StateComplete || before.Spec.Outcome != nil
	return wasComplete && run.Spec.Canary && !before.Spec.Canary && run.Spec.Attempt > before.Spec.Attempt
}

// attempts checks that a cluster starts again only after it has failed, or as a canary of a new
// attempt.
func attempts(before, run *fleetv1alpha1.ClusterUpgradeRun) error {
	is, was := run.Spec.Attempt, before.Spec.Attempt
	failed := (before.Status.State == fleetv1alpha1.StateFailed || isLate(before)) && before.Status.Attempt == was ||
		before.Spec.Outcome != nil && before.Spec.Outcome.State == fleetv1alpha1.StateFailed
	if is < was || is > was && !failed && !before.Spec.AdmissionTime.IsZero() && !becomesCanary(before, run) {
		return fmt.Errorf("cluster %s is %q in attempt %d, and begins attempt %d", run.Namespace, before.Status.State, was, is)
	}
	return nil
}

// ranks orders the states of a cluster within an attempt.
var ranks = map[fleetv1alpha1.ClusterUpgradeState]int{
	"": 0, fleetv1alpha1.StateNotStarted: 0, fleetv1alpha1.StateInitialized: 1, fleetv1alpha1.StatePartialUpgrade: 2,
	fleetv1alpha1.StateFailed: 3, fleetv1alpha1.StateComplete: 3,
}

// states checks that a cluster never goes back within an attempt and that its final state persists,
// except for a late success. A cluster may be pending again if nothing was requested from it and, unless
// a user has held it, no pre-action was applied.
func states(before, run *fleetv1alpha1.ClusterUpgradeRun) error {
	is, was := run.Status.State, before.Status.State
	if before.Status.Attempt != run.Status.Attempt || is == was {
		return nil
	}
	late := was == fleetv1alpha1.StateFailed && is == fleetv1alpha1.StateComplete && run.Status.Reason == fleetv1alpha1.ReasonLateSuccess
	acted := before.Status.PreUpgradeAction != nil && before.Status.PreUpgradeAction.Applied && before.Status.Reason != engine.ReasonPaused
	withdrawn := run.Spec.AdmissionTime.IsZero() && was == fleetv1alpha1.StateInitialized && is == fleetv1alpha1.StateNotStarted && !acted
	if ranks[is] <= ranks[was] && !late && !withdrawn {
		return fmt.Errorf("cluster %s was %s, and is %s: %s", run.Namespace, was, is, run.Status.Reason)
	}
	return nil
}

// order lists the steps of a run in order.
var order = []string{
	fleetv1alpha1.StepPreUpgradeActionAvailable, fleetv1alpha1.StepUpgradeDelivered, fleetv1alpha1.StepClusterUpgraded,
	fleetv1alpha1.StepOperatorsUpgraded, fleetv1alpha1.StepPostUpgradeActionAvailable, fleetv1alpha1.StepSoaked,
}

// steps checks that each step started after all previous steps had succeeded, and that the
// Succeeded condition matches the state.
func steps(run *fleetv1alpha1.ClusterUpgradeRun) error {
	s := &run.Status
	if s.State == fleetv1alpha1.StateComplete && apimeta.IsStatusConditionFalse(s.Conditions, fleetv1alpha1.ConditionSucceeded) ||
		s.State == fleetv1alpha1.StateFailed && apimeta.IsStatusConditionTrue(s.Conditions, fleetv1alpha1.ConditionSucceeded) {
		return fmt.Errorf("cluster %s is %s, and condition Succeeded is the opposite", run.Namespace, s.State)
	}
	if len(s.History) == 0 {
		return nil
	}
	found := map[string]history.StepCondition{}
	for _, c := range s.History[0].Conditions {
		found[c.Type] = c
	}
	missing := ""
	for _, name := range order {
		c, known := found[name]
		if known && c.StartTime != nil && missing != "" {
			return fmt.Errorf("cluster %s: %s began before %s had succeeded", run.Namespace, name, missing)
		}
		if missing == "" && (!known || c.CompleteTime == nil || c.Status != metav1.ConditionTrue) {
			missing = name
		}
	}
	return nil
}
