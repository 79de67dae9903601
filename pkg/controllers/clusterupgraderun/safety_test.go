// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// canaries makes clusters the canaries.
func canaries(names ...string) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{ClusterSelector: fleetv1beta1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: names}},
		}}
	}
}

func maxFailures(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxFailures = new(intstr.FromInt32(n))
	}
}

// evictWhen removes each cluster from the selection some time after what has happened on it, as the taint of a
// cluster that cannot be reached does, and a Placement that selects by release.
func (f *fleet) evictWhen(what string, after time.Duration) {
	f.TB.Helper()
	due := map[string]time.Time{}
	var gone []string
	for end := f.Now().Add(40 * time.Hour); f.Now().Before(end); f.RunFor(time.Minute) {
		for _, line := range f.history {
			name, happened, _ := strings.Cut(line, " ")
			if happened == what && due[name].IsZero() {
				due[name] = f.Now().Add(after)
			}
		}
		before := len(gone)
		for name, at := range due {
			if !slices.Contains(gone, name) && !f.Now().Before(at) {
				gone = append(gone, name)
			}
		}
		if len(gone) == before {
			continue
		}
		var left []string
		for name := range f.spokes {
			if !slices.Contains(gone, name) {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		f.selectClusters(left...)
	}
}

// expectStop compares the clusters that have begun, and the reason why no other one does.
func (f *fleet) expectStop(reason string, begun ...string) {
	f.TB.Helper()
	u := f.upgrade()
	admitting := apimeta.FindStatusCondition(u.Status.Conditions, fleetv1beta1.ConditionAdmitting)
	if !slices.Equal(f.admitted, begun) || admitting == nil || admitting.Reason != reason {
		f.TB.Errorf("%v have begun, want %v; %+v, want %s; %+v", f.admitted, begun, admitting, reason, *u.Status.ClustersSummery)
	}
	if apimeta.IsStatusConditionTrue(u.Status.Conditions, fleetv1beta1.ConditionComplete) {
		f.TB.Error("the upgrade is complete")
	}
}

func TestSafety_evicted_canary_that_failed_stops_the_rollout(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, canaries("c1", "c2"), concurrency(2))
	f.stuck["c2"] = true
	f.evictWhenOnly("c2", 5*time.Minute)
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1", "c2")
	if s := f.upgrade().Status.ClustersSummery; s.Total != 6 || s.Failed != 1 {
		t.Errorf("%+v", *s)
	}
}

// A retry does without a canary that has failed only if a person says so.
func TestSafety_retry_waits_for_a_canary_that_failed_and_was_evicted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, canaries("c1", "c2"), concurrency(2))
	f.stuck["c2"] = true
	f.evictWhenOnly("c2", 5*time.Minute)
	f.RunFor(12 * time.Hour)
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Attempt = 2 })
	f.RunFor(40 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonHeld, "c1", "c2")
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryNotAvailable, "c1", "c2")
	if stop := f.upgrade().Status.Stop; stop == nil || !strings.Contains(stop.Message, "have it selected again") {
		t.Errorf("%+v", stop)
	}
	u := f.upgrade()
	metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c2@2=its site is closed")
	f.Update(u)
	f.RunFor(12 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "ClusterUpgradeTimedOut", "c3": "Complete", "c4": "Complete", "c5": "Complete", "c6": "Complete"})
}

// evictWhenOnly removes one cluster from the selection some time after its upgrade has begun.
func (f *fleet) evictWhenOnly(name string, after time.Duration) {
	f.TB.Helper()
	f.Await(time.Hour, func() bool { return slices.Contains(f.history, name+" upgrade") })
	f.RunFor(after)
	var left []string
	for other := range f.spokes {
		if other != name {
			left = append(left, other)
		}
	}
	slices.Sort(left)
	f.selectClusters(left...)
}

func TestSafety_evicted_failures_exceed_the_budget(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 8, concurrency(2), maxFailures(1))
	for name := range f.spokes {
		f.stuck[name] = true
	}
	f.evictWhen("upgrade", 5*time.Minute)
	f.expectStop(fleetv1beta1.ReasonMaxFailuresExceeded, "c1", "c2")
}

func TestSafety_selection_by_release_loses_no_failure(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, actions, maxFailures(0))
	for name := range f.spokes {
		f.jobs[name+" check"] = "Failed"
	}
	f.evictWhen("upgrade done", 10*time.Second)
	f.expectStop(fleetv1beta1.ReasonMaxFailuresExceeded, "c1")
}

func TestSafety_late_success_of_a_canary_lifts_no_stop(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.stuck["c1"] = true
	f.RunFor(3 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.change(0, "c1", func() { f.spokes["c1"].Complete(f.Now()); f.note("c1", "upgrade done") })
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Attempt = 2 })
	f.RunFor(20 * time.Minute) // it is observed again
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.RunFor(12 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
}

// claim has a cluster claim a release.
func (f *fleet) claim(name, release string) {
	f.TB.Helper()
	managed := simulation.Get(f.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	managed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: release}}
	f.UpdateStatus(managed)
}

// setFailing has the cluster version operator of the first cluster report Failing.
func (f *fleet) setFailing(status string) {
	const name = "c1"
	f.change(0, name, func() {
		f.spokes[name].SetCondition(f.spokes[name].Version(), "Failing", status, "ClusterOperatorDegraded", "etcd is degraded", f.Now())
	})
}

func TestSafety_canary_that_failed_its_soak_is_looked_at_again(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(50 * time.Minute) // it soaks
	f.claim("c1", target)
	f.setFailing("True")
	f.RunFor(2 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Attempt = 2 })
	f.RunFor(2 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.expectStates(map[string]string{"c1": "UnhealthyDuringSoak"})
	f.setFailing("False")
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Attempt = 3 })
	f.RunFor(2 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
}

func TestSafety_canary_at_the_target_is_looked_at(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	f.RunFor(time.Minute)
	f.spokes["c1"].Accept(target, f.Now())
	f.spokes["c1"].Complete(f.Now())
	f.claim("c1", target)
	f.setFailing("True")
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Paused = false })
	f.RunFor(12 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
}

func TestSafety_silent_canary_does_not_soak(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(50 * time.Minute) // it soaks
	f.setOffline(true)
	f.RunFor(44 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.expectSlow(metav1.ConditionFalse)
	f.RunFor(3 * time.Minute)
	f.expectSlow(metav1.ConditionTrue)
	f.RunFor(100 * time.Minute) // 30 minutes and 2 hours after the start of the soak
	f.expectStop(fleetv1beta1.ReasonCanaryFailed, "c1")
	f.expectStates(map[string]string{"c1": "SoakTimedOut"})
}

func TestSafety_canary_with_a_silent_work_agent_does_not_soak(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(50 * time.Minute) // it soaks
	f.silent["c1"] = true      // and stays available
	f.RunFor(60 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.silent["c1"] = false
	f.wake("c1")
	f.RunFor(25 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.RunFor(10 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonFinished, "c1", "c2", "c3")
}

// A soak ends with a proof that the work agent is alive, also if another client has removed the work that proves it.
func TestSafety_soak_without_the_work_of_the_preflight(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.RunFor(50 * time.Minute) // it soaks
	preflight := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: delivery.PreflightName("c1")}}
	f.Delete(preflight)
	f.RunFor(5 * time.Minute)
	f.silent["c1"] = true // and stays available
	f.RunFor(60 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.silent["c1"] = false
	f.wake("c1")
	f.RunFor(35 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonFinished, "c1", "c2", "c3")
}

// expectSlow compares the status of the condition Slow.
func (f *fleet) expectSlow(want metav1.ConditionStatus) {
	f.TB.Helper()
	if c := apimeta.FindStatusCondition(f.upgrade().Status.Conditions, fleetv1beta1.ConditionSlow); c == nil || c.Status != want {
		f.TB.Errorf("condition Slow: %+v, want %s", c, want)
	}
}

func TestSafety_interruption_starts_the_soak_again(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(*fleet){
		"silent": func(f *fleet) { f.setOffline(true); f.RunFor(2 * time.Minute); f.setOffline(false) },
		"silent for a moment": func(f *fleet) {
			f.setAvailable("c1", metav1.ConditionUnknown)
			f.setAvailable("c1", metav1.ConditionTrue)
		},
		"failing": func(f *fleet) { f.setFailing("True"); f.RunFor(2 * time.Minute); f.setFailing("False") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 1, canaries("c1"))
			f.RunFor(65 * time.Minute) // upgraded after 42 minutes
			interrupt(f)
			f.RunFor(26 * time.Minute)
			f.expectStates(map[string]string{"c1": "PartialUpgrade"})
			f.RunFor(6 * time.Minute)
			f.expectStates(map[string]string{"c1": "Complete"})
		})
	}
}

func TestCancel_removes_the_actions_once_nothing_is_in_flight(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, actions)
	f.RunFor(80 * time.Minute) // one is complete, one in flight, one pending
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Cancelled = true })
	f.RunFor(10 * time.Minute)
	if works := f.actionWorks(delivery.PreUpgrade); len(works) != 2 {
		t.Errorf("works while a cluster is in flight: %v", works)
	}
	f.RunFor(2 * time.Hour)
	if s := f.upgrade().Status.ClustersSummery; s.Complete != 2 || s.Pending != 1 {
		t.Errorf("%+v", *s)
	}
	if left := slices.Concat(f.actionWorks(delivery.PreUpgrade), f.actionWorks(delivery.PostUpgrade)); len(left) > 0 {
		t.Errorf("works are left on %v", left)
	}
}

// A cluster whose admission was withdrawn after its pre-action has nothing left to wait for.
func TestCancel_removes_the_works_of_a_cluster_that_is_pending_again(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, actions)
	f.spokes["c1"].Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
	f.RunFor(time.Hour)
	f.expectStates(map[string]string{"c1": "NotStarted"})
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Cancelled = true })
	f.RunFor(10 * time.Minute)
	for _, work := range simulation.List(f.Harness, &workv1.ManifestWorkList{}).Items {
		t.Errorf("work %s is left", work.Name)
	}
	f.expectStates(map[string]string{"c1": "NotStarted"})
}

// hold annotates the first cluster with a reason to hold it; an empty one releases it.
func (f *fleet) hold(reason string) {
	f.TB.Helper()
	managed := simulation.Get(f.Harness, client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{})
	managed.Annotations = map[string]string{upgradev1alpha1.HoldAnnotation: reason}
	if reason == "" {
		managed.Annotations = nil
	}
	f.Update(managed)
}

func TestHeld_cluster_is_pending_again(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"before its first step": 0, "while its pre-action runs": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 2, actions)
			f.Await(time.Minute, func() bool { return len(f.admitted) > 0 })
			f.RunFor(when)
			f.hold("migration")
			f.RunFor(40 * time.Minute)
			f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
			f.RunFor(15 * time.Minute)
			f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1", "c2")
			f.expectStates(map[string]string{"c1": "NotStarted", "c2": "PartialUpgrade"})
			if s := f.upgrade().Status.ClustersSummery; s.Pending != 1 || s.PartialUpgrade != 1 {
				t.Errorf("%+v", *s)
			}
			f.Process.Kill()
			f.start(release{image: hubImage})
			f.RunFor(3 * time.Hour)
			f.expectStates(map[string]string{"c1": "NotStarted", "c2": "Complete"})
			f.expectStop(fleetv1beta1.ReasonHeld, "c1", "c2")
			f.hold("")
			f.RunFor(3 * time.Hour)
			f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete"})
			if slices.Contains(f.of("c2"), "c2 backup") && len(f.of("c1")) != len(f.of("c2")) {
				t.Errorf("%v", f.history)
			}
		})
	}
}

func TestHeld_cluster_keeps_its_slot_after_its_commit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.stuck["c1"] = true
	f.RunFor(10 * time.Minute)
	f.hold("migration")
	f.RunFor(100 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
	f.expectStates(map[string]string{"c1": "PartialUpgrade"})
}

func TestHeld_canary_stops_the_rollout(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), actions, concurrency(2))
	f.RunFor(2 * time.Minute)
	f.hold("migration")
	f.RunFor(60 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonHeld, "c1")
	f.RunFor(40 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonCanaryNotAvailable, "c1")
	f.expectStates(map[string]string{"c1": "NotStarted"})
}

func TestUnreachable_cluster_is_pending_again(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fleetv1beta1.ManagedClustersUpgrade){"with actions": actions, "without actions": func(*fleetv1beta1.ManagedClustersUpgrade) {}} {
		for what, available := range map[string]metav1.ConditionStatus{"unreachable": metav1.ConditionUnknown, "silent, and available": metav1.ConditionTrue} {
			t.Run(what+" "+name, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, 2, edit, maxFailures(0))
				f.Await(time.Minute, func() bool { return len(f.admitted) > 0 })
				f.silent["c1"] = true
				f.setAvailable("c1", available)
				f.RunFor(40 * time.Minute)
				f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
				f.RunFor(15 * time.Minute)
				f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1", "c2")
				f.RunFor(4 * time.Hour)
				f.expectStates(map[string]string{"c1": "NotStarted", "c2": "Complete"})
				f.expectStop(fleetv1beta1.ReasonHeld, "c1", "c2")
				if s := f.upgrade().Status.ClustersSummery; s.Failed != 0 || s.Pending != 1 {
					t.Errorf("%+v", *s)
				}
				f.silent["c1"] = false
				f.setAvailable("c1", metav1.ConditionTrue)
				f.wake("c1")
				f.RunFor(3 * time.Hour)
				f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete"})
			})
		}
	}
}

// A hub that starts while a run waits does not count from its start: the run would fail before.
func TestUnreachable_cluster_is_pending_again_although_the_hub_starts_again(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*fleetv1beta1.ManagedClustersUpgrade){"with actions": actions, "without actions": func(*fleetv1beta1.ManagedClustersUpgrade) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 2, edit, maxFailures(0))
			f.Await(time.Minute, func() bool { return len(f.admitted) > 0 })
			f.silent["c1"] = true
			f.setAvailable("c1", metav1.ConditionUnknown)
			f.RunFor(40 * time.Minute)
			f.Process.Kill()
			f.start(release{image: hubImage})
			f.RunFor(15 * time.Minute)
			f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1", "c2")
			f.RunFor(4 * time.Hour)
			f.expectStates(map[string]string{"c1": "NotStarted", "c2": "Complete"})
		})
	}
}

// A run that waits since a time in the future, by a clock that was ahead, gives its slot back nevertheless.
func TestHeld_cluster_that_a_clock_ahead_has_admitted_is_pending_again(t *testing.T) {
	t.Parallel()
	const ahead = 24 * time.Hour
	f := newFleet(t, 2)
	f.Process.Clock().Step(ahead)
	f.Await(time.Minute, func() bool { return len(f.admitted) > 0 })
	f.hold("migration")
	f.RunFor(time.Minute)
	f.Process.Clock().Step(-ahead)
	f.RunFor(58 * time.Minute)
	f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1", "c2")
}

// A cluster whose administrators hold it, or whose agent does not remove an earlier work, gives its slot back. It does not get it
// again at once as the first one in the order.
func TestObstructed_cluster_does_not_get_its_slot_again(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ obstruct, end func(*fleet) }{
		"held by its ClusterVersion": {
			func(f *fleet) {
				f.spokes["c1"].Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
			},
			func(f *fleet) { f.spokes["c1"].Version().SetAnnotations(nil) },
		},
		"being upgraded to another release": {
			func(f *fleet) { f.spokes["c1"].Accept("4.20.6-rc.1", f.Now()) },
			func(f *fleet) { f.spokes["c1"].Complete(f.Now()) },
		},
		"asked to check a release only": {
			func(f *fleet) { f.spokes["c1"].SetDesiredUpdate(map[string]any{"mode": "Preflight"}) },
			func(f *fleet) { f.spokes["c1"].SetDesiredUpdate(nil) },
		},
		"keeps an earlier work": {
			func(f *fleet) {
				earlier := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "c1"}}
				earlier.Spec.Attempt, earlier.Spec.ClusterVersion = 1, f.upgrade().Spec.ClusterVersion
				earlier.Spec.ManagedClustersUpgrade.UID = "another"
				work, err := delivery.PreflightWork(earlier)
				f.Must(err)
				work.Finalizers = []string{workv1.ManifestWorkFinalizer}
				f.silent["c1"] = true
				f.Create(work)
				f.RunFor(time.Minute) // the hub deletes it, because there is no such upgrade
			},
			func(f *fleet) { f.silent["c1"] = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
			tc.obstruct(f)
			f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Paused = false })
			f.RunFor(40 * time.Minute)
			f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1")
			f.RunFor(15 * time.Minute)
			f.expectStop(fleetv1beta1.ReasonNoFreeSlot, "c1", "c2")
			f.RunFor(4 * time.Hour)
			f.expectStates(map[string]string{"c1": "NotStarted", "c2": "Complete"})
			f.expectStop(fleetv1beta1.ReasonHeld, "c1", "c2")
			f.Process.Kill()
			f.start(release{image: hubImage})
			f.RunFor(4 * time.Hour)
			f.expectStop(fleetv1beta1.ReasonHeld, "c1", "c2")
			f.change(0, "c1", func() { tc.end(f) })
			f.RunFor(3 * time.Hour)
			f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete"})
		})
	}
}

func TestCanary_held_by_its_ClusterVersion_stops_the_rollout(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canaries("c1"), concurrency(2))
	f.spokes["c1"].Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
	f.RunFor(time.Hour)
	f.expectStop(fleetv1beta1.ReasonHeld, "c1")
	f.RunFor(time.Hour)
	f.expectStop(fleetv1beta1.ReasonCanaryNotAvailable, "c1")
}

// A dry run upgrades no cluster, also if it begins when one is in flight.
func TestDryRun_holds_what_is_not_delivered(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2, actions)
	f.Await(time.Minute, func() bool { return len(f.admitted) > 0 })
	f.RunFor(time.Minute) // its pre-action runs
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.DryRun = true })
	f.RunFor(3 * time.Hour)
	f.expectStop(fleetv1beta1.ReasonDryRun, "c1")
	if slices.Contains(f.history, "c1 upgrade") {
		t.Errorf("upgraded: %v", f.history)
	}
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.DryRun = false })
	f.RunFor(5 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete"})
}
