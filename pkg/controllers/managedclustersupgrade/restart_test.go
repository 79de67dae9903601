// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

func (w *world) restart() {
	w.t.Helper()
	w.process.Kill()
	w.start()
}

// expectCondition compares the status of a condition.
func (w *world) expectComplete(want metav1.ConditionStatus) {
	w.t.Helper()
	if c := w.condition(fleetv1beta1.ConditionComplete); c.Status != want {
		w.t.Errorf("condition Complete is %s (%s: %s), want %s; %s", c.Status, c.Reason, c.Message, want, w.describe())
	}
}

// pauseHalfDone holds the admission of a fleet of which one cluster is complete.
func (w *world) pauseHalfDone() {
	w.t.Helper()
	w.runFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/0/2", fleetv1beta1.ReasonPaused)
}

func TestRestart_while_the_selection_is_unstable_completes_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pauseHalfDone()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.unstable = "the Placement does not exist"
	w.restart()
	w.runFor(time.Hour)
	w.expectComplete(metav1.ConditionFalse)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable || w.get().Status.CompletionTime != nil {
		t.Errorf("%s, completion time %s", w.describe(), w.get().Status.CompletionTime)
	}
	w.unstable = ""
	w.runFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	w.unstable = "the Placement does not exist"
	w.runFor(time.Minute)
	w.expectComplete(metav1.ConditionTrue)
}

// Neither a failure that is ignored nor one of the attempt before is a lost record.
func TestDelete_waits_for_a_run_without_its_label(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(2))
	w.runFor(10 * time.Minute)
	held := w.run("c0001")
	held.Labels, w.cleaning["c0001"] = nil, true
	w.must(w.client.Update(t.Context(), held))
	w.must(w.client.Delete(t.Context(), w.get()))
	w.runFor(time.Minute)
	if u := w.get(); len(u.Finalizers) == 0 || w.run("c0001").DeletionTimestamp == nil {
		t.Errorf("finalizers %v, deletion of the run %s", u.Finalizers, w.run("c0001").DeletionTimestamp)
	}
	held = w.run("c0001")
	held.Finalizers = nil
	w.must(w.client.Update(t.Context(), held))
	w.runFor(time.Minute)
	var list fleetv1beta1.ManagedClustersUpgradeList
	w.must(w.client.List(t.Context(), &list))
	if len(list.Items) > 0 || len(w.runs()) > 0 {
		t.Errorf("%d upgrades and %d runs are left", len(list.Items), len(w.runs()))
	}
}

func TestRetry_while_a_failed_canary_cleans_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, canary, maxFailures(0))
	w.makeCanary("c0000")
	w.fails["c0000"] = 1
	w.runFor(30 * time.Minute)
	w.cleaning["c0000"] = true
	w.runFor(time.Hour)
	w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.runFor(time.Hour)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonNoFreeSlot)
	w.cleaning["c0000"] = false
	run := w.run("c0000")
	run.Finalizers = nil
	w.must(w.client.Update(t.Context(), run))
	w.runFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

func TestRollout_canary_without_its_label_remains_one(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary, concurrency(3))
	w.makeCanary("c0000")
	w.makeCanary("c0001")
	w.fails["c0000"] = 1
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "canary") })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", fleetv1beta1.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

func TestRestart_confirms_a_selection_that_has_shrunk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pauseHalfDone()
	w.process.Kill()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	for _, name := range []string{"c0001", "c0002"} {
		w.editCluster(name, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	}
	w.start()
	w.runFor(50 * time.Second)
	w.expectComplete(metav1.ConditionFalse)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable {
		t.Error(w.describe())
	}
	w.runFor(20 * time.Second)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	w.expectComplete(metav1.ConditionTrue)
}

func TestRestart_does_not_count_a_deselected_failure_again(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.fails["c0000"] = 1
	w.runFor(3 * time.Hour)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.runFor(time.Hour)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	w.published = nil
	w.restart()
	w.runFor(5 * time.Minute)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	if len(w.published) > 0 {
		t.Errorf("%d statuses were published", len(w.published))
	}
}

func TestRecordsLost_after_a_retry(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		w := newWorld(t, 4, concurrency(2), maxFailures(3))
		w.detachable = true
		w.fails["c0000"], w.fails["c0001"] = 5, 5
		w.runFor(3 * time.Hour)
		w.expect("4/0/0/2/2/0", fleetv1beta1.ReasonFinished)
		w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
		w.runFor(time.Minute)
		w.expect("4/0/0/2/0/2", fleetv1beta1.ReasonPaused)
		w.must(w.client.Delete(t.Context(), w.run("c0002")))
		if restart {
			w.restart()
		}
		w.runFor(time.Minute)
		w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonRecordsLost)
	}
}

func TestRecordsLost_not_by_a_failure_that_no_longer_counts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2), maxFailures(3))
	w.fails["c0000"], w.fails["c0001"] = 1, 1
	w.slow["c0001"] = true
	w.runFor(time.Hour)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, true })
	w.runFor(10 * time.Hour) // c0001 fails in the attempt before
	w.expect("4/0/0/1/0/3", fleetv1beta1.ReasonPaused)
	w.fails["c0000"] = 5
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.runFor(hours)
	w.expect("4/0/0/3/1/0", fleetv1beta1.ReasonFinished)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.runFor(time.Hour)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Labels["selected"] = "yes" })
	w.runFor(time.Hour)
	w.expect("4/0/0/3/1/0", fleetv1beta1.ReasonFinished)
}

func TestRecordsLost_not_by_a_cluster_that_is_being_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, concurrency(2))
	w.detachable = true
	w.runFor(time.Hour)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"example.com/cleanup"} })
	w.must(w.client.Delete(t.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0000"}}))
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.runFor(time.Minute)
	w.must(w.client.Delete(t.Context(), w.run("c0000")))
	w.runFor(time.Minute)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Finalizers = nil })
	w.runFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}
