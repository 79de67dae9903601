// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// stalled reports whether the UpgradeJob is stalled.
func (w *world) stalled() bool {
	return meta.IsStatusConditionTrue(w.job().Status.Conditions, maintenancev1beta1.ConditionSlow)
}

// untilEndedWithoutStall runs until the UpgradeJob has ended, and fails if it stalls before.
func (w *world) untilEndedWithoutStall() {
	w.TB.Helper()
	for w.record().CompleteTime == nil {
		w.RunTo(w.Now().Add(5 * time.Minute))
		if w.stalled() {
			w.TB.Fatalf("at %s, the upgrade is stalled: %s", w.Now(), w.describe())
		}
		if w.Now().After(startAfter.Add(24 * time.Hour)) {
			w.TB.Fatalf("the upgrade does not end: %s", w.describe())
		}
	}
	w.settle()
}

// updateWorkers has the nodes of the pool worker updated one by one from a time on, once the control plane
// is updated and the pool is paused.
func (w *world) updateWorkers(from time.Time, nodes int, each time.Duration) {
	w.TB.Helper()
	w.untilStep("DelayedPoolsUpdated")
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
		if pool.Name == "worker" {
			pool.Status.MachineCount, pool.Status.UpdatedMachineCount = int32(nodes), 0
		}
	})
	w.cluster.WorkersDuration = time.Duration(nodes) * each
	for done := range nodes {
		w.After(from.Add(time.Duration(done)*each+time.Second).Sub(w.Now()), func() {
			w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
				if pool.Name == "worker" && !pool.Spec.Paused {
					pool.Status.UpdatedMachineCount = int32(done)
				}
			})
		})
	}
}

// A pool that waits for its time is not stuck, and neither is one whose nodes are updated one after the
// other, however long that takes. What changes for people only is written rarely.
func TestDelay_is_no_stall(t *testing.T) {
	t.Parallel()
	const workers = 30
	w := newWorld(t)
	w.Create(newJob(delayWorker("9h", "10h"), func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "20h" }))
	w.updateWorkers(startAfter.Add(9*time.Hour), workers, 5*time.Minute)
	w.untilEndedWithoutStall()
	if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	writes := 0
	for _, request := range w.Requests {
		if request == "patch UpgradeJob" {
			writes++
		}
	}
	if writes > 40 {
		t.Errorf("%d writes of the UpgradeJob", writes)
	}
}

// The condition Progressing names the step, since the step began.
func TestProgressing_since_the_step_began(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob())
	w.untilStep("UpgradeCompleted")
	w.RunTo(w.Now().Add(time.Minute))
	step := w.record().Conditions[len(w.record().Conditions)-1]
	c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionProgressing)
	if step.Type != "UpgradeCompleted" || c == nil || c.Reason != step.Type || !c.LastTransitionTime.Equal(step.StartTime) {
		t.Errorf("%+v began at %s, and the condition is %+v", step.Type, step.StartTime, c)
	}
}

// Nodes that make no progress after their release are reported, and the report ends with the progress.
func TestStall_of_released_pools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob(delayWorker("5h", "6h"), func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "20h" }))
	w.updateWorkers(startAfter.Add(12*time.Hour), 2, time.Hour)
	w.cluster.WorkersDuration = 9 * time.Hour
	slow := startAfter.Add(5*time.Hour + w.config.Workers.SlowAfter.Duration)
	for _, step := range []struct {
		at   time.Time
		want bool
	}{
		{slow.Add(-5 * time.Minute), false}, {slow.Add(10 * time.Minute), true}, {startAfter.Add(13*time.Hour + 10*time.Minute), false},
	} {
		if w.RunTo(step.at); w.stalled() != step.want {
			t.Errorf("at %s, stalled is %t, want %t: %s", step.at, w.stalled(), step.want, w.describe())
		}
	}
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
}

// A pool whose window has passed before the upgrade commences would stay paused.
func TestExpiredPools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	degraded := func(status configv1.ConditionStatus) {
		w.cluster.ChangeOperator(func(operator *configv1.ClusterOperator) {
			for i := range operator.Status.Conditions {
				if c := &operator.Status.Conditions[i]; c.Type == configv1.OperatorDegraded {
					c.Status = status
				}
			}
		})
	}
	degraded(configv1.ConditionTrue)
	w.Create(newJob(delayWorker("1h", "2h"), func(job *maintenancev1beta1.UpgradeJob) {
		job.Spec.StartBefore = timestamp(startAfter.Add(4 * time.Hour))
		job.Spec.Config.UpgradeTimeout = "12h"
		job.Spec.Config.PreUpgradeHealthChecks.Timeout = "4h"
	}))
	w.RunTo(startAfter.Add(150 * time.Minute))
	degraded(configv1.ConditionFalse)
	w.untilEnded()
	want := outcome{phase: maintenancev1beta1.PhaseSkipped, reason: "UnpausingPoolsExpired", step: "PoolsPaused"}
	if got := w.outcome(); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	if w.workers().Spec.Paused {
		t.Error("the pool is left paused")
	}
}

// A retry after the commit runs what failed, and ends as that does.
func TestRetry_after_the_commit(t *testing.T) {
	t.Parallel()
	t.Run("unhealthy", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "12h" }))
		w.untilStep("UpgradeCompleted")
		degraded := func(status configv1.ConditionStatus) {
			w.cluster.ChangeOperator(func(operator *configv1.ClusterOperator) {
				for i := range operator.Status.Conditions {
					if c := &operator.Status.Conditions[i]; c.Type == configv1.OperatorDegraded {
						c.Status = status
					}
				}
			})
		}
		degraded(configv1.ConditionTrue)
		w.untilEnded()
		failed := w.failed("PostHealthCheck", "UnhealthyAfterUpgrade")
		w.Create(&maintenancev1beta1.UpgradeSuspensionWindow{ // what has commenced is never suspended
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "holidays"},
			Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
				Start: timestamp(w.Now()), End: timestamp(w.Now().Add(24 * time.Hour)), JobSelector: &maintenancev1beta1.LabelSelector{},
			},
		})
		for attempt, tc := range []struct {
			status configv1.ConditionStatus
			want   outcome
		}{
			{configv1.ConditionTrue, failed},
			{configv1.ConditionFalse, outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}},
		} {
			degraded(tc.status)
			w.annotate(maintenancev1beta1.RetryAnnotation, string(tc.status))
			w.settle()
			w.untilEnded()
			if got := w.outcome(); got != tc.want || w.record().Attempt != int32(attempt+2) {
				t.Errorf("attempt %d: got %+v, want %+v; %s", w.record().Attempt, got, tc.want, w.describe())
			}
		}
	})
	t.Run("pool left paused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.Create(newJob(delayWorker("1h", "2h"), func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "12h" }))
		w.RunTo(startAfter.Add(30 * time.Minute))
		w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
			return r.Kind == "MachineConfigPool"
		})
		w.untilEnded()
		if got, want := w.outcome(), w.failed("DelayedPoolsUpdated", "UnpausingPoolsExpired"); got != want {
			t.Fatalf("got %+v, want %+v; %s", got, want, w.describe())
		}
		w.Writes = nil
		w.annotate(maintenancev1beta1.RetryAnnotation, "again")
		w.settle()
		w.untilEnded()
		if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
			t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
		}
		if w.workers().Spec.Paused {
			t.Errorf("the pool is still paused: %s", w.describe())
		}
	})
}

// A hook that runs once is left to the next upgrade if the first one was skipped before its first event.
func TestSkippedJob_uses_up_no_hook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, events := range map[string][]maintenancev1beta1.HookEvent{
		"once": {maintenancev1beta1.EventStart, maintenancev1beta1.EventFinish}, "end": {maintenancev1beta1.EventSkip, maintenancev1beta1.EventFinish},
	} {
		h := hook(name, maintenancev1beta1.HookFailureIgnore, nil, events...)
		h.Spec.Run = maintenancev1beta1.HookRunNext
		w.Create(h)
	}
	w.Create(&maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "holidays"},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: timestamp(startAfter.Add(-time.Hour)), End: timestamp(startAfter.Add(time.Hour)), JobSelector: &maintenancev1beta1.LabelSelector{},
		},
	})
	w.Create(newJob())
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: maintenancev1beta1.PhaseSkipped, reason: "Suspended", step: "NotSuspended"}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	for name, want := range map[string]bool{"once": false, "end": true} {
		h := simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJobHook{})
		if claimed := h.Status.ClaimedBy != nil; claimed != want {
			t.Errorf("hook %s is claimed: %t, want %t", name, claimed, want)
		}
	}
}
