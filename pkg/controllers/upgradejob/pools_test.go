// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// items returns the items of the steps with their statuses, sorted.
func (w *world) items() []string {
	w.TB.Helper()
	var items []string
	for _, c := range w.record().Conditions {
		for _, item := range c.Items {
			items = append(items, c.Type+" "+item.Name+": "+item.Status)
		}
	}
	slices.Sort(items)
	return items
}

// A pool that was delayed stays one whose hooks run, although its labels change.
func TestRelabeledPool(t *testing.T) {
	t.Parallel()
	relabel := func(w *world, value string) {
		simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) { pool.Labels["pool"] = value })
	}
	for name, tc := range map[string]struct {
		at       time.Duration // after startAfter, when the pool is relabeled
		label    string
		released time.Duration
	}{
		"while it is paused, not delayed any more":     {30 * time.Minute, "none", time.Hour},
		"while it is updated, not delayed any more":    {61 * time.Minute, "none", time.Hour},
		"while it is paused, delayed until later":      {30 * time.Minute, "late", 3 * time.Hour},
		"while it is updated, delayed until later":     {61 * time.Minute, "late", time.Hour},
		"while the control plane is upgraded, removed": {2 * time.Minute, "none", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(hook("after", maintenancev1beta1.HookFailureAbort, nil, maintenancev1beta1.EventMachineConfigPoolUpdated))
			w.Create(newJob(delayWorker("1h", "2h"), func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.Config.UpgradeTimeout = "12h"
				job.Spec.Config.MachineConfigPools = append(job.Spec.Config.MachineConfigPools, maintenancev1beta1.MachineConfigPoolConfig{
					MachineConfigPoolSelector: selectPool("late"), DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "3h", DelayMax: "4h"},
				})
			}))
			w.RunTo(startAfter.Add(tc.at))
			relabel(w, tc.label)
			w.RunTo(startAfter.Add(tc.released - time.Second))
			if paused := w.workers().Spec.Paused; paused != (tc.at < tc.released) {
				t.Errorf("before the release, the pool is paused: %t; %s", paused, w.describe())
			}
			w.untilEnded()
			if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
				t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
			}
			if got, want := w.items(), []string{"DelayedPoolsUpdated MachineConfigPoolUpdated/worker: Completed"}; !slices.Equal(got, want) {
				t.Errorf("items %q, want %q", got, want)
			}
		})
	}
}

// The mark of another UpgradeJob keeps a pool paused that this one does not delay. Once a user unpauses
// it, the hooks of this UpgradeJob do not run for it.
func TestForeignPool_that_a_user_unpauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(hook("after", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.ExitCode: "1"}, maintenancev1beta1.EventMachineConfigPoolUpdated))
	w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.UpgradeTimeout = "12h" }))
	w.untilStep("UpgradeCompleted")
	kept := clusterstate.PoolMark{OwnerUID: "another", Attempt: 1, KeptSince: w.Now().Truncate(time.Second)}
	simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Paused = true
		pool.Annotations = map[string]string{clusterstate.AnnotationPausedBy: kept.String()}
	})
	w.RunTo(startAfter.Add(2 * time.Hour))
	want := []maintenancev1beta1.MachineConfigPoolStatus{{Name: "worker", State: pools.StatePausedOnFailure}}
	if diff := cmp.Diff(want, w.job().Status.MachineConfigPools); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = false })
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
	if got := w.items(); len(got) > 0 {
		t.Errorf("items %q, want none", got)
	}
}

// At a deadline, the record shows what has become of the hooks, although their step is no longer called.
func TestItems_at_the_deadline(t *testing.T) {
	t.Parallel()
	down := func(from, until time.Duration) func(*world) {
		return at(from, func(w *world) {
			w.Process.Kill()
			w.RunTo(startAfter.Add(until))
			w.Begin()
		})
	}
	for name, tc := range map[string]struct {
		event  maintenancev1beta1.HookEvent
		policy maintenancev1beta1.HookFailurePolicy
		pod    map[string]string
		then   func(*world)
		want   outcome
		items  []string
		events []string // about hooks
	}{
		"a hook after the update ended while the operator was down": {
			event: maintenancev1beta1.EventMachineConfigPoolUpdated, policy: maintenancev1beta1.HookFailureAbort, pod: map[string]string{kubelet.Duration: "90m"},
			then:  down(2*time.Hour, 10*time.Hour),
			want:  outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1},
			items: []string{"DelayedPoolsUpdated MachineConfigPoolUpdated/worker/slow: Succeeded"}, events: []string{"Normal HookSucceeded"},
		},
		"a hook after the update failed while the operator was down": {
			event: maintenancev1beta1.EventMachineConfigPoolUpdated, policy: maintenancev1beta1.HookFailureAbort,
			pod:   map[string]string{kubelet.Duration: "90m", kubelet.ExitCode: "1"},
			then:  down(2*time.Hour, 10*time.Hour),
			want:  outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "DelayedPoolsUpdated", commits: 1},
			items: []string{"DelayedPoolsUpdated MachineConfigPoolUpdated/worker/slow: Failed"}, events: []string{"Warning HookFailed"},
		},
		"a hook after the update hangs": {
			event: maintenancev1beta1.EventMachineConfigPoolUpdated, policy: maintenancev1beta1.HookFailureIgnore, pod: map[string]string{kubelet.NeverEnds: "true"},
			want:  outcome{phase: history.PhaseFailed, reason: "TimedOut", step: "DelayedPoolsUpdated", commits: 1},
			items: []string{"DelayedPoolsUpdated MachineConfigPoolUpdated/worker/slow: Running"},
		},
		"a hook at the start ended while the operator was down": {
			event: maintenancev1beta1.EventStart, policy: maintenancev1beta1.HookFailureAbort, pod: map[string]string{kubelet.Duration: "20m"},
			then:  down(10*time.Minute, 2*time.Hour),
			want:  outcome{phase: history.PhaseSkipped, reason: "Expired", step: "StartHooksDone"},
			items: []string{"StartHooksDone Start/slow: Succeeded"}, events: []string{"Normal HookSucceeded"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(hook("slow", tc.policy, tc.pod, tc.event))
			w.Create(newJob(delayWorker("1h", "2h")))
			if tc.then != nil {
				tc.then(w)
			}
			w.untilEnded()
			if got := w.outcome(); got != tc.want {
				t.Errorf("got %+v, want %+v; %s", got, tc.want, w.describe())
			}
			if got := w.items(); !slices.Equal(got, tc.items) {
				t.Errorf("items %q, want %q", got, tc.items)
			}
			isOther := func(event string) bool { return !strings.Contains(event, " Hook") }
			if got := slices.DeleteFunc(w.events(), isOther); !slices.Equal(got, tc.events) {
				t.Errorf("Events %q, want %q", got, tc.events)
			}
		})
	}
}

// A hook with the policy Abort fails while its pool cannot be marked. The failure counts later, even if the Job has
// been deleted by then, and the process has ended.
func TestUnpauseHook_fails_while_its_pool_cannot_be_changed(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]simulation.Outcome{"refused": simulation.Refuse, "conflict": simulation.Conflict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := startAfter.Add(5 * time.Minute)
			repaired := startAfter.Add(40 * time.Minute)
			w := newWorld(t, func(w *world) {
				w.plan = simulation.Fault{Outcome: outcome}.If(func(r simulation.Request) bool {
					return r.Kind == "MachineConfigPool" && !w.Now().Before(broken) && w.Now().Before(repaired)
				})
			})
			w.Create(hook("aborts", maintenancev1beta1.HookFailureAbort, map[string]string{kubelet.ExitCode: "1"}, maintenancev1beta1.EventMachineConfigPoolUnpause))
			w.Create(newJob(delayWorker("5m", "2h")))
			w.RunTo(startAfter.Add(30 * time.Minute))
			if got := w.items(); slices.ContainsFunc(got, func(item string) bool { return strings.HasSuffix(item, ": Failed") }) {
				t.Errorf("the failure is recorded before the pool is marked: %q", got)
			}
			jobs := simulation.List(w.Harness, &batchv1.JobList{}, client.InNamespace(namespace))
			for i := range jobs.Items {
				w.Must(w.User.Delete(t.Context(), &jobs.Items[i], client.PropagationPolicy("Background")))
			}
			w.Process.Kill()
			w.RunTo(repaired)
			w.Begin()
			w.untilEnded()
			if got, want := w.outcome(), (w.failed("DelayedPoolsUpdated", "HookFailed")); got != want {
				t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
			}
			if !w.workers().Spec.Paused {
				t.Errorf("the pool was unpaused; %s", w.describe())
			}
		})
	}
}

// failed returns the outcome of an upgrade that failed after its commit.
func (*world) failed(step, reason string) outcome {
	return outcome{phase: history.PhaseFailed, reason: reason, step: step, commits: 1}
}

// An UpgradeJob that has ended lists a pool that stays paused since its release is refused, also once its
// release window has passed.
func TestPoolLeftPaused_after_the_end(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.Unresponsive = true
	w.Create(newJob(delayWorker("2h", "3h")))
	w.RunTo(startAfter.Add(20 * time.Minute))
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { // another client starts an update at that time
		v.Status.History = slices.Insert(v.Status.History, 0, configv1.UpdateHistory{Version: "4.4.7", State: configv1.PartialUpdate})
	})
	w.untilEnded()
	w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
		return r.Kind == "MachineConfigPool"
	})
	for _, step := range []struct {
		after time.Duration
		state string
	}{
		{90 * time.Minute, "Paused"},
		{2*time.Hour + time.Minute, "Releasing"},
		{3*time.Hour + time.Minute, "LeftPaused"},
		{48 * time.Hour, "LeftPaused"},
	} {
		w.RunTo(startAfter.Add(step.after))
		statuses := w.job().Status.MachineConfigPools
		if len(statuses) != 1 || statuses[0].Name != "worker" || statuses[0].State != step.state {
			t.Errorf("%s after the start, machineConfigPools are %+v, want worker %s; %s", step.after, statuses, step.state, w.describe())
		}
	}
	w.Writes = nil
	simulation.Edit(w.Harness, w.workers(), func(pool *mcfgv1.MachineConfigPool) { pool.Spec.Paused = false })
	w.settle()
	if statuses := w.job().Status.MachineConfigPools; len(statuses) > 0 {
		t.Errorf("after a user has unpaused the pool, machineConfigPools are %+v", statuses)
	}
}

// An entry that selects no pool is reported before the start, and skips nothing: the nodes that it should
// delay would be updated at once.
func TestEntryThatSelectsNoPool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob(delayWorker("1h", "2h"), func(job *maintenancev1beta1.UpgradeJob) {
		job.Spec.Config.MachineConfigPools = append(job.Spec.Config.MachineConfigPools, maintenancev1beta1.MachineConfigPoolConfig{
			MachineConfigPoolSelector: selectPool("nihgt"), DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "1h", DelayMax: "2h"},
		})
	}))
	w.RunTo(noon.Add(3 * time.Minute))
	const want = "spec.config.machineConfigPools[1] selects no machine config pool"
	conditions := w.job().Status.Conditions
	for _, condition := range []string{maintenancev1beta1.ConditionAccepted, maintenancev1beta1.ConditionPreCheckPassed} {
		if c := meta.FindStatusCondition(conditions, condition); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, want) {
			t.Errorf("%s is %+v", condition, c)
		}
	}
	if c := meta.FindStatusCondition(conditions, maintenancev1beta1.ConditionAccepted); c == nil || c.Reason != pools.ReasonNoPoolSelected {
		t.Errorf("Accepted is %+v", c)
	}
	if events := w.events(); !slices.Contains(events, "Warning PreCheckFailed") {
		t.Errorf("the Events are %q", events)
	}
	w.untilEnded()
	if got, want := w.outcome(), (outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 1}); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
}
