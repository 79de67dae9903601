// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestAttemptsThatStartAtOnceRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"), job("b"), rivalConfig())
	w.RunTo(startAfter.Add(3 * time.Hour))
	for _, name := range []string{"a", "b"} {
		if r := w.record(name); r.Phase != history.PhaseUpgraded || !w.isReleased(name) {
			t.Errorf("job %s: phase %s, %s", name, r.Phase, r.Message)
		}
	}
	if got := w.rival().Status.History[0].Phase; got != history.PhaseUpgraded {
		t.Errorf("the rival: phase %s", got)
	}
	if len(w.cluster.upgrades) != 3 {
		t.Errorf("upgrades of the cluster: %q", w.cluster.upgrades)
	}
}

func TestStepsBeforeTheLockRunWhileAnotherUpgradeHasIt(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.cluster.duration = 4 * time.Hour
	w.Create(rivalConfig())
	w.RunTo(startAfter.Add(time.Minute))
	w.Create(job("a"))
	w.RunFor(time.Minute)
	r := w.record("a")
	if c := step(r, "HooksDone"); c == nil || c.CompleteTime == nil {
		t.Errorf("the hooks have not run: %+v", r.Conditions)
	}
	if c := step(r, "LockAcquired"); r.Phase != history.PhasePending || c == nil || c.Reason != "ClusterLocked" {
		t.Errorf("phase %s, step %+v", r.Phase, c)
	}
	if holder := w.holder(); holder.Name != "c" {
		t.Errorf("the lock is that of %s", holder)
	}
	w.RunFor(24 * time.Hour)
	if r := w.record("a"); r.Phase != history.PhaseSkipped || r.Reason != "Expired" || !w.isReleased("a") {
		t.Errorf("after its window: phase %s, %s: %s", r.Phase, r.Reason, r.Message)
	}
	if got := w.cluster.outcomes["a"]; !slices.Equal(got, []engine.Outcome{engine.OutcomeSkipped}) {
		t.Errorf("outcomes %q", got)
	}
	if len(w.cluster.upgrades) != 1 {
		t.Errorf("upgrades of the cluster: %q", w.cluster.upgrades)
	}
}

func TestUpgradeSurvivesACrashAtEachWrite(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, plan simulation.FaultPlan) {
		t.Helper()
		w := newJobWorld(t)
		w.Plan = plan
		w.Restart()
		w.Create(job("a"), job("b"))
		w.RunTo(startAfter.Add(3 * time.Hour))
		for _, name := range []string{"a", "b"} {
			if r := w.record(name); r.Phase != history.PhaseUpgraded || !w.isReleased(name) {
				t.Errorf("job %s: phase %s, %s: %s", name, r.Phase, r.Reason, r.Message)
			}
		}
		if len(w.cluster.upgrades) != 2 || w.cluster.hooks["a"] == 0 {
			t.Errorf("upgrades of the cluster: %q", w.cluster.upgrades)
		}
	}
	simulation.EachFault(t, 20, run, simulation.CrashBefore, simulation.CrashAfter)
}

// A process that stalls between its Lease and its record must not lose the Lease: the other kind's controller goes on
// in that time.
func TestLeaseThatIsNotRecordedYetIsNotBroken(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	stalled := false
	w.Plan = func(r simulation.Request) simulation.Fault {
		if w.holder().Name == "a" && r.IsWrite() && r.Kind == "UpgradeJob" && !stalled {
			stalled = true
			return simulation.Fault{Outcome: simulation.Stall, For: time.Minute}
		}
		return simulation.Fault{}
	}
	w.Restart()
	rival := rivalConfig()
	rival.Spec.UpgradeAt = startAfter.Add(time.Second).Format(time.RFC3339)
	w.Create(job("a"), rival)
	w.RunTo(startAfter.Add(30 * time.Second))
	if !stalled || w.holder().Name != "a" {
		t.Errorf("stalled: %t; the lock is that of %s", stalled, w.holder())
	}
	w.RunTo(startAfter.Add(3 * time.Hour))
	if len(w.cluster.upgrades) != 2 {
		t.Errorf("upgrades of the cluster: %q", w.cluster.upgrades)
	}
}

// The process of another leader has given the lock to another upgrade before a write notes the request in it.
func TestLeaseThatIsTakenBeforeTheRequest(t *testing.T) {
	t.Parallel()
	for write, name := range []string{"before the record", "right before the request"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newJobWorld(t)
			rival := rivalConfig()
			rival.Spec.UpgradeAt = startAfter.Add(5 * time.Minute).Format(time.RFC3339)
			writes := 0
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Kind != "Lease" || w.holder().Name != "a" {
					return simulation.Fault{}
				}
				if writes++; writes == write+1 {
					other := &lock.Lock{Client: w.User, Live: w.User, Key: client.ObjectKeyFromObject(w.lease()), Clock: w.Clock(), InProgress: isEnded}
					holder := lock.Holder{Group: upgradev1alpha1.GroupVersion.Group, Kind: "UpgradeConfig", Namespace: namespace, Name: "c", UID: string(w.rival().UID)}
					_, err := other.AcquireConfirmed(t.Context(), holder, lock.Attempt{Version: version, Type: "OSD"})
					w.Must(err)
				}
				return simulation.Fault{}
			}
			w.Create(job("a"), rival)
			w.RunTo(startAfter.Add(3 * time.Hour))
			if want := []string{"c", "a"}; writes <= write || !slices.Equal(w.cluster.upgrades, want) {
				t.Errorf("the upgrades are %q, want %q; %d writes of the Lease", w.cluster.upgrades, want, writes)
			}
		})
	}
}

func isEnded(context.Context, lock.Holder, lock.Attempt) (bool, error) { return false, nil }

// The duration of an upgrade does not include the time for which its attempt has only waited for its time.
func TestDurationBeginsAtTheRequestedTime(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.RunTo(startAfter.Add(3 * time.Hour))
	families, err := w.Registry.Gather()
	w.Must(err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "managed_upgrade_duration_seconds" })
	if i < 0 {
		t.Fatal("no duration is measured")
	}
	h := families[i].GetMetric()[0].GetHistogram()
	if took := time.Duration(h.GetSampleSum() * float64(time.Second)); h.GetSampleCount() != 1 || took < 10*time.Minute || took > time.Hour {
		t.Errorf("%d upgrades took %s", h.GetSampleCount(), took)
	}
}

// No event follows the last write of a pass, and a new list may show it alone: the end of an attempt asks for the pass that
// serves the next request.
func TestEndAsksForAnotherPass(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	var after []time.Duration
	w.Program.Reconciled = func(r reconcile.Request, result reconcile.Result, _ error) {
		if r.Name == "a" && w.record("a").Finished() {
			after = append(after, result.RequeueAfter)
		}
	}
	w.RunTo(startAfter.Add(3 * time.Hour))
	if len(after) == 0 || after[0] != time.Second || after[len(after)-1] != 0 {
		t.Errorf("the next pass is requested in %s", after)
	}
}

func TestDeletionWhileWaitingForTheLock(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.cluster.duration = 4 * time.Hour
	w.Create(rivalConfig())
	w.RunTo(startAfter.Add(time.Minute))
	w.Create(job("a"))
	w.RunFor(time.Minute)
	w.Delete(job("a"))
	w.RunFor(time.Minute)
	if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(job("a")), job("a")); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the job exists: %v", err)
	}
	if n := w.events("a", "UpgradeContinues"); n != 0 {
		t.Errorf("%d Events UpgradeContinues", n)
	}
	if got := w.cluster.outcomes["a"]; !slices.Equal(got, []engine.Outcome{engine.OutcomeCancelled}) {
		t.Errorf("outcomes %q", got)
	}
	if holder := w.holder(); holder.Name != "c" || len(w.cluster.upgrades) != 1 || w.cluster.withdrawn != 0 {
		t.Errorf("the lock is that of %s; upgrades of the cluster: %q, %d withdrawn", holder, w.cluster.upgrades, w.cluster.withdrawn)
	}
}

func TestRecordThatIsLostBehindTheLock(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"requested": "Commenced", "commenced": "Upgraded"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newJobWorld(t)
			w.Create(job("a"))
			w.Await(24*time.Hour, func() bool { return step(w.record("a"), at) != nil })
			hooks := w.cluster.hooks["a"]
			w.edit("a", func(j *maintenancev1beta1.UpgradeJob) { j.Status = maintenancev1beta1.UpgradeJobStatus{} })
			w.Create(rivalConfig())
			w.RunFor(time.Second)
			if r := w.record("a"); step(r, "LockAcquired") == nil || w.holder().Name != "a" {
				t.Errorf("the record is %+v; the lock is that of %s", r, w.holder())
			}
			w.RunTo(startAfter.Add(3 * time.Hour))
			if r := w.record("a"); r.Phase != history.PhaseUpgraded || r.Attempt != 1 {
				t.Errorf("phase %s, %s", r.Phase, r.Message)
			}
			if w.cluster.hooks["a"] != hooks || len(w.cluster.upgrades) != 2 {
				t.Errorf("the hooks ran again, or upgrades of the cluster: %q", w.cluster.upgrades)
			}
		})
	}
}

func TestLeaseThatAnotherClientDeletes(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.Await(24*time.Hour, func() bool { return step(w.record("a"), "Upgraded") != nil })
	w.Process.Kill() // or it would acquire the lock again at once
	w.Delete(w.lease())
	rival := rivalConfig()
	w.Create(rival)
	w.Restart()
	w.Process.Enqueue(requestFor("c"))
	w.RunTo(startAfter.Add(3 * time.Hour))
	if len(w.cluster.upgrades) != 2 {
		t.Errorf("upgrades of the cluster: %q", w.cluster.upgrades)
	}
}

// What another client has begun is not the upgrade of an attempt that waits.
func TestWaitingAttemptDoesNotAdoptAnotherUpgrade(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.RunFor(time.Minute)
	w.cluster.commence("a user")
	w.RunFor(time.Minute)
	if r := w.record("a"); r.Phase != history.PhaseNew || step(r, "LockAcquired") == nil {
		t.Errorf("before its time: phase %s, steps %+v", r.Phase, r.Conditions)
	}
	w.cluster.installed = true
	w.RunTo(startAfter.Add(time.Minute))
	if r := w.record("a"); r.Phase != history.PhaseSkipped || r.Reason != "AlreadyAtVersion" {
		t.Errorf("after its time: phase %s, %s: %s", r.Phase, r.Reason, r.Message)
	}
}

func TestPausedPhase(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.cluster.pausedUntil = startAfter.Add(2 * time.Hour)
	w.RunTo(startAfter.Add(90 * time.Minute))
	r := w.record("a")
	paused := meta.FindStatusCondition(w.job("a").Status.Conditions, history.ConditionPaused)
	if r.Phase != history.PhasePaused || paused == nil || paused.Status != metav1.ConditionTrue || paused.Reason != "DelaySet" || paused.Message != "later" {
		t.Errorf("phase %s, condition %+v", r.Phase, paused)
	}
	before := w.job("a").ResourceVersion
	w.RunFor(10 * time.Minute)
	if w.job("a").ResourceVersion != before {
		t.Error("the status was written while nothing happened")
	}
	w.RunTo(startAfter.Add(3 * time.Hour))
	if r := w.record("a"); r.Phase != history.PhaseUpgraded || meta.IsStatusConditionTrue(w.job("a").Status.Conditions, history.ConditionPaused) {
		t.Errorf("in the end: phase %s", r.Phase)
	}
}

// From the creation until the requested time, nothing is written.
func TestWaitForTheRequestedTimeIsQuiet(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.RunFor(time.Minute)
	w.Requests = nil
	w.RunTo(startAfter.Add(-time.Second))
	if len(w.Requests) > 0 {
		t.Errorf("requests: %q", w.Requests)
	}
	if c := step(w.record("a"), "LockAcquired"); c == nil || c.Reason != "Scheduled" {
		t.Errorf("step %+v", c)
	}
}

// The Lease and the status are written before and after a request. Each of these writes causes a
// pass, but the next request is made a second later.
func TestRequestWithoutEffectIsRepeatedOnceASecond(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.cluster.inConflict = true
	w.RunTo(startAfter.Add(10 * time.Second))
	w.Requests, w.cluster.conflicts = nil, 0
	w.RunFor(30 * time.Second)
	if n := w.cluster.conflicts; n < 28 || n > 31 || len(w.Requests) > 6*n {
		t.Errorf("%d conflicts and %d requests to the API server in 30 s", n, len(w.Requests))
	}
	w.cluster.inConflict = false
	w.RunTo(startAfter.Add(time.Hour))
	if r := w.record("a"); r.Phase != history.PhaseUpgraded {
		t.Errorf("in the end: phase %s, %s", r.Phase, r.Message)
	}
}

func TestForgedRecordDoesNotStartBeforeItsTime(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.Create(job("a"))
	w.RunFor(time.Minute)
	w.edit("a", func(j *maintenancev1beta1.UpgradeJob) {
		for i := range j.Status.History[0].Conditions {
			c := &j.Status.History[0].Conditions[i]
			c.Status, c.Reason, c.CompleteTime = metav1.ConditionTrue, "Done", c.StartTime
		}
	})
	w.RunTo(startAfter.Add(-time.Second))
	if len(w.cluster.upgrades) > 0 {
		t.Errorf("upgrades of the cluster before the requested time: %q", w.cluster.upgrades)
	}
	w.RunTo(startAfter.Add(3 * time.Hour))
	if r := w.record("a"); r.Phase != history.PhaseUpgraded {
		t.Errorf("phase %s, %s", r.Phase, r.Message)
	}
}

func TestHistoryByAttemptKeepsTheLastFive(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	j := job("a")
	w.Create(j)
	w.cluster.refuse = true
	for i := range 7 {
		w.RunTo(startAfter.Add(time.Duration(i+1) * 24 * time.Hour))
		w.edit("a", func(j *maintenancev1beta1.UpgradeJob) {
			j.Status.Retry = &maintenancev1beta1.RetryStatus{Token: w.Now().UTC().Format(time.RFC3339)}
		})
	}
	w.RunFor(24 * time.Hour)
	var numbers []int32
	for _, r := range w.job("a").Status.History {
		numbers = append(numbers, r.Attempt)
		if r.Phase != history.PhaseSkipped || len(r.PreviousAttempts) > 0 {
			t.Errorf("attempt %d: phase %s, previous attempts %v", r.Attempt, r.Phase, r.PreviousAttempts)
		}
	}
	if want := []int32{8, 7, 6, 5, 4}; !slices.Equal(numbers, want) {
		t.Errorf("attempts %v, want %v", numbers, want)
	}
	if got := w.cluster.outcomes["a"]; len(got) != 8 || slices.ContainsFunc(got, func(o engine.Outcome) bool { return o != engine.OutcomeSkipped }) {
		t.Errorf("outcomes %q", got)
	}
}

// step returns the condition of a step; nil if it has not begun.
func step(r history.Record, name string) *history.StepCondition {
	for i := range r.Conditions {
		if r.Conditions[i].Type == name {
			return &r.Conditions[i]
		}
	}
	return nil
}

func (w *jobWorld) events(name, reason string) int {
	var list corev1.EventList
	w.Must(w.User.List(w.TB.Context(), &list))
	n := 0
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && e.Reason == reason {
			n += int(max(1, e.Count))
		}
	}
	return n
}

func (w *jobWorld) lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	err := w.User.Get(w.TB.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, lease)
	w.Must(client.IgnoreNotFound(err))
	return lease
}

func (w *jobWorld) holder() lock.Holder { return lock.HolderOf(w.lease()) }

// What was published about an object is forgotten with it, also if it never had the finalizer.
func TestPublishersForgetObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	c := rivalConfig()
	w.Create(c)
	w.RunFor(time.Minute)
	w.Delete(c.DeepCopy())
	again := rivalConfig()
	w.Create(again) // before the deletion is seen
	w.RunFor(time.Minute)
	if !w.forgot[string(c.UID)] || w.forgot[string(again.UID)] {
		t.Errorf("forgotten: %v", w.forgot)
	}
	w.Delete(again.DeepCopy())
	w.RunFor(time.Minute)
	if !w.forgot[string(again.UID)] {
		t.Errorf("forgotten: %v", w.forgot)
	}
}
