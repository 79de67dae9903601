// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func (*world) forget(u *fleetv1beta1.ManagedClustersUpgrade, failures string) {
	metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ForgetFailureAnnotation, failures)
}

// expectCondition compares the status of a condition.
func (w *world) expectComplete(want metav1.ConditionStatus) {
	w.TB.Helper()
	if c := w.condition(fleetv1beta1.ConditionComplete); c.Status != want {
		w.TB.Errorf("condition Complete is %s (%s: %s), want %s; %s", c.Status, c.Reason, c.Message, want, w.describe())
	}
}

// pauseHalfDone holds the admission of a fleet with one complete cluster.
func (w *world) pauseHalfDone() {
	w.TB.Helper()
	w.RunFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(2 * time.Hour)
	w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonPaused)
}

func TestRestart_while_the_selection_is_unstable_completes_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pauseHalfDone()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.unstable = "the Placement does not exist"
	w.Restart()
	w.RunFor(time.Hour)
	w.expectComplete(metav1.ConditionFalse)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable || w.get().Status.CompletionTime != nil {
		t.Errorf("%s, completion time %s", w.describe(), w.get().Status.CompletionTime)
	}
	w.unstable = ""
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	w.unstable = "the Placement does not exist"
	w.RunFor(time.Minute)
	w.expectComplete(metav1.ConditionTrue)
}

// Neither an ignored failure nor one of the attempt before is a lost record.
func TestDelete_waits_for_a_run_without_its_label(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(2))
	w.RunFor(10 * time.Minute)
	held := w.run("c0001")
	held.Labels, w.cleaning["c0001"] = nil, true
	w.Update(held)
	w.Delete(w.get())
	w.RunFor(time.Minute)
	if u := w.get(); len(u.Finalizers) == 0 || w.run("c0001").DeletionTimestamp == nil {
		t.Errorf("finalizers %v, deletion of the run %s", u.Finalizers, w.run("c0001").DeletionTimestamp)
	}
	held = w.run("c0001")
	held.Finalizers = nil
	w.Update(held)
	w.RunFor(time.Minute)
	list := simulation.List(w.Harness, &fleetv1beta1.ManagedClustersUpgradeList{})
	if len(list.Items) > 0 || len(w.runs()) > 0 {
		t.Errorf("%d upgrades and %d runs are left", len(list.Items), len(w.runs()))
	}
}

func TestRetry_while_a_failed_canary_cleans_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, canary, maxFailures(0))
	w.makeCanary("c0000")
	w.fails["c0000"] = 1
	w.RunFor(30 * time.Minute)
	w.cleaning["c0000"] = true
	w.RunFor(time.Hour)
	w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(time.Hour)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonNoFreeSlot)
	w.cleaning["c0000"] = false
	run := w.run("c0000")
	run.Finalizers = nil
	w.Update(run)
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

func TestRollout_canary_without_its_label_remains_one(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary, concurrency(3))
	w.makeCanary("c0000")
	w.makeCanary("c0001")
	w.fails["c0000"] = 1
	w.RunFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "canary") })
	w.RunFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(2 * time.Hour)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestRestart_confirms_a_selection_that_has_shrunk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pauseHalfDone()
	w.Process.Kill()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	for _, name := range []string{"c0001", "c0002"} {
		w.editCluster(name, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	}
	w.Begin()
	w.RunFor(50 * time.Second)
	w.expectComplete(metav1.ConditionFalse)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable {
		t.Error(w.describe())
	}
	w.RunFor(20 * time.Second)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	w.expectComplete(metav1.ConditionTrue)
}

func TestRestart_does_not_count_a_forgotten_failure_again(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.fails["c0000"] = 1
	w.RunFor(3 * time.Hour)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000=its disk is broken") })
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.RunFor(time.Hour)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	w.published = nil
	w.Restart()
	w.RunFor(5 * time.Minute)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	if len(w.published) > 0 {
		t.Errorf("%d statuses were published", len(w.published))
	}
}

// The failure of a later attempt is another one: the person has said nothing about it.
func TestForget_failure_of_one_attempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, maxFailures(0))
	w.fails["c0000"] = 2
	w.RunFor(time.Hour)
	w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000=its disk is broken") })
	w.RunFor(time.Hour)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused, u.Spec.Attempt = false, 2 })
	w.RunFor(hours)
	w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
	if got := w.get().Status.ForgottenFailures; len(got) > 0 {
		t.Errorf("failures that are forgotten: %+v", got)
	}
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000@2=its disk is broken") })
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

// A canary that a person waives in one attempt is a canary in the next one.
func TestContinue_without_a_canary_in_one_attempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, canary)
	w.makeCanary("c0000")
	w.setAvailable("c0000", metav1.ConditionUnknown)
	w.RunFor(time.Hour)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ContinueWithoutCanaryAnnotation, "c0000=its site is closed")
	})
	w.fails["c0000"], w.fails["c0001"] = 2, 1
	w.RunFor(time.Hour)
	w.setAvailable("c0000", metav1.ConditionTrue)
	w.RunFor(hours)
	w.expect("2/0/0/0/2/0", fleetv1beta1.ReasonFinished)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(hours)
	w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonCanaryFailed)
}

func TestRecordsLost_after_a_retry(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		w := newWorld(t, 4, concurrency(2), maxFailures(3))
		w.detachable = true
		w.fails["c0000"], w.fails["c0001"] = 5, 5
		w.RunFor(3 * time.Hour)
		w.expect("4/0/0/2/2/0", fleetv1beta1.ReasonFinished)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
		w.RunFor(time.Minute)
		w.expect("4/0/0/2/0/2", fleetv1beta1.ReasonPaused)
		w.Delete(w.run("c0002"))
		if restart {
			w.Restart()
		}
		w.RunFor(time.Minute)
		w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonRecordsLost)
	}
}

func TestRecordsLost_not_by_a_failure_that_no_longer_counts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2), maxFailures(3))
	w.fails["c0000"], w.fails["c0001"] = 1, 1
	w.slow["c0001"] = true
	w.RunFor(time.Hour)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
	w.RunFor(10 * time.Hour) // c0001 fails in the attempt before
	w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonPaused)
	w.fails["c0000"] = 5
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(hours)
	w.expect("4/0/0/3/1/0", fleetv1beta1.ReasonFinished)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { w.forget(u, "c0000@2=its disk is broken") })
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.RunFor(time.Hour)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Labels["selected"] = "yes" })
	w.RunFor(time.Hour)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished) // it is complete, and rests
}

func TestRecordsLost_not_by_a_cluster_that_is_being_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.detachable = true
	w.RunFor(time.Hour)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/cleanup"} })
	w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0000"}})
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.RunFor(time.Minute)
	w.Delete(w.run("c0000"))
	w.RunFor(time.Minute)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestRecordsLost_not_by_clusters_that_leave_while_no_hub_runs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gone, want, reason string
		failed             int32
		lost               bool // the record alone is gone
	}{
		"complete":           {gone: "c0000", want: "3/0/0/3/0/0", reason: fleetv1beta1.ReasonFinished},
		"in flight":          {gone: "c0002", want: "3/0/0/3/0/0", reason: fleetv1beta1.ReasonFinished, failed: 1},
		"record of complete": {gone: "c0000", want: "4/0/0/3/0/1", reason: fleetv1beta1.ReasonRecordsLost, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4, concurrency(2))
			w.detachable = true
			w.RunFor(time.Hour) // two are complete, two in flight
			w.Process.Kill()
			if !tc.lost {
				w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: tc.gone}})
			}
			w.Delete(w.run(tc.gone))
			w.RunFor(time.Minute)
			w.Begin()
			w.RunFor(hours)
			w.expect(tc.want, tc.reason)
			var failed int32
			for _, d := range w.get().Status.Departed {
				failed += d.Failed
			}
			if failed != tc.failed {
				t.Errorf("%+v have left and were not complete, want %d", w.get().Status.Departed, tc.failed)
			}
		})
	}
}
