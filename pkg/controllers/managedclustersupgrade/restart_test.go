// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

func (w *world) restart() {
	w.t.Helper()
	w.process.Kill()
	w.start()
}

// expectCondition compares the status of a condition.
func (w *world) expectCondition(name string, want metav1.ConditionStatus) {
	w.t.Helper()
	if c := w.condition(name); c.Status != want {
		w.t.Errorf("condition %s is %s (%s: %s), want %s; %s", name, c.Status, c.Reason, c.Message, want, w.describe())
	}
}

// pauseHalfDone holds the admission of a fleet of which one cluster is complete.
func (w *world) pauseHalfDone() {
	w.t.Helper()
	w.runFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/0/2", rollout.ReasonPaused)
}

func TestRestart_while_the_selection_is_unstable_completes_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.pauseHalfDone()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.unstable = "the Placement does not exist"
	w.restart()
	w.runFor(time.Hour)
	w.expectCondition(fleetv1beta1.ConditionComplete, metav1.ConditionFalse)
	if w.reason() != rollout.ReasonSelectionUnstable || w.get().Status.CompletionTime != nil {
		t.Errorf("%s, completion time %s", w.describe(), w.get().Status.CompletionTime)
	}
	w.unstable = ""
	w.runFor(hours)
	w.expect("3/0/0/3/0/0", rollout.ReasonFinished)
	w.unstable = "the Placement does not exist"
	w.runFor(time.Minute)
	w.expectCondition(fleetv1beta1.ConditionComplete, metav1.ConditionTrue)
}

// Neither a failure that is ignored nor one of the attempt before is a lost record.
func TestDelete_waits_for_a_run_without_its_label(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(2))
	w.runFor(10 * time.Minute)
	held := w.run("c0001")
	held.Finalizers, held.Labels = []string{fleetv1alpha1.Finalizer}, nil
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
	w.editClusterLabel("c0000", "canary")
	w.fails["c0000"] = 1
	w.runFor(30 * time.Minute)
	run := w.run("c0000")
	run.Finalizers = []string{fleetv1alpha1.Finalizer}
	w.must(w.client.Update(t.Context(), run))
	w.runFor(time.Hour)
	w.expect("2/0/0/0/1/1", rollout.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.runFor(time.Hour)
	w.expect("2/0/0/0/0/2", rollout.ReasonNoFreeSlot)
	run = w.run("c0000")
	run.Finalizers = nil
	w.must(w.client.Update(t.Context(), run))
	w.runFor(hours)
	w.expect("2/0/0/2/0/0", rollout.ReasonFinished)
}

func TestRollout_canary_without_its_label_remains_one(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary, concurrency(3))
	w.editClusterLabel("c0000", "canary")
	w.editClusterLabel("c0001", "canary")
	w.fails["c0000"] = 1
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", rollout.ReasonCanaryFailed)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "canary") })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/1/1/1", rollout.ReasonCanaryFailed)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.runFor(2 * time.Hour)
	w.expect("3/0/0/3/0/0", rollout.ReasonFinished)
}
