// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// soon lets the window open five minutes after the beginning.
func soon(job *maintenancev1beta1.UpgradeJob) {
	start := noon.Truncate(time.Minute).Add(5 * time.Minute)
	job.Spec.StartAfter, job.Spec.StartBefore = timestamp(start), timestamp(start.Add(time.Hour))
}

// faultyWorld is a world with an UpgradeJob that has hooks and delays a pool.
func faultyWorld(t *testing.T, plan simulation.FaultPlan) *world {
	t.Helper()
	w := newWorld(t, func(w *world) { w.plan, w.definitions = plan, nil }) // the other tests validate what is written
	w.Create(hook("start", maintenancev1beta1.HookFailureAbort, nil, maintenancev1beta1.EventStart, maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventFinish))
	w.Create(newJob(soon, delayWorker("30m", "2h")))
	return w
}

// expectOneUpgrade checks that everything was done, and once.
func (w *world) expectOneUpgrade() {
	w.TB.Helper()
	record := w.record()
	if record.Phase != history.PhaseUpgraded || w.commits != 1 {
		w.TB.Errorf("%d requests; %s", w.commits, w.describe())
	}
	if len(w.job().Status.History) != 1 || record.Attempt != 1 {
		w.TB.Errorf("the history has %d attempts", len(w.job().Status.History))
	}
	jobs := simulation.List(w.Harness, &batchv1.JobList{}, client.InNamespace(namespace))
	events := map[string]int{}
	for i := range jobs.Items {
		for key, value := range jobs.Items[i].Labels {
			if strings.HasSuffix(key, "/event") {
				events[value]++
			}
		}
	}
	if len(jobs.Items) != 3 || len(events) != 3 {
		w.TB.Errorf("the Jobs of the hooks are %v, want one for each of 3 events", events)
	}
	if w.workers().Spec.Paused {
		w.TB.Error("the delayed pool is still paused")
	}
}

// TestFaults ends the operator at every write of one upgrade, or loses the answer of every other.
func TestFaults(t *testing.T) {
	t.Parallel()
	log := &simulation.WriteLog{}
	clean := faultyWorld(t, log.Plan)
	clean.untilEnded()
	clean.expectOneUpgrade()
	if len(log.Writes) < 50 {
		t.Fatalf("%d writes only", len(log.Writes))
	}
	for _, fault := range log.Faults(simulation.CrashBefore, simulation.CrashAfter, simulation.LoseAnswer) {
		if fault.Outcome == simulation.LoseAnswer && fault.Write%2 == 0 {
			continue
		}
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			w := faultyWorld(t, fault.Plan)
			w.untilEnded()
			w.expectOneUpgrade()
		})
	}
}

// TestRecordLost removes the status of an UpgradeJob at several times. The Lease shows that the attempt
// has begun, and whether it has requested the version.
func TestRecordLost(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{
		"while it is pending":         -time.Minute,
		"while it is requested":       10 * time.Second,
		"after the commit":            3 * time.Minute,
		"while a pool is delayed":     25 * time.Minute,
		"after the window has closed": 70 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(newJob(soon, delayWorker("90m", "2h")))
			w.RunTo(noon.Truncate(time.Minute).Add(5*time.Minute + after))
			job := w.job()
			before := job.DeepCopy()
			job.Status = maintenancev1beta1.UpgradeJobStatus{}
			w.Must(w.User.Status().Patch(t.Context(), job, client.MergeFrom(before)))
			w.untilEnded()
			if w.record().Phase != history.PhaseUpgraded || w.commits != 1 || w.workers().Spec.Paused {
				t.Errorf("%d requests, paused: %t; %s", w.commits, w.workers().Spec.Paused, w.describe())
			}
		})
	}
}

// TestRecordLost_retry removes the status of an UpgradeJob during its second attempt, and the attempt
// continues: the Lease notes its number and its time, and the spec does not.
func TestRecordLost_retry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hook maintenancev1beta1.HookEvent // of a hook that never ends, or empty
		step string                       // when the status is lost
		want outcome
	}{
		"before the commit": {
			hook: maintenancev1beta1.EventUpgradeStart, step: "UpgradeStartHooksDone",
			want: outcome{phase: history.PhaseSkipped, reason: "Expired", step: "UpgradeStartHooksDone", commits: 1},
		},
		"after the commit": {step: "UpgradeCompleted", want: outcome{phase: history.PhaseUpgraded, reason: "Upgraded", commits: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cluster.Rejection = "the signature is missing"
			w.Create(newJob(soon))
			w.untilEnded()
			w.cluster.Rejection = ""
			w.cluster.ReportHealthy()
			if tc.hook != "" {
				w.Create(hook("hangs", maintenancev1beta1.HookFailureIgnore, map[string]string{kubelet.NeverEnds: "true"}, tc.hook))
			}
			w.annotate(maintenancev1beta1.RetryAnnotation, "again")
			w.untilStep(tc.step)
			want := w.record()
			job := w.job()
			before := job.DeepCopy()
			job.Status = maintenancev1beta1.UpgradeJobStatus{}
			w.Must(w.User.Status().Patch(t.Context(), job, client.MergeFrom(before)))
			w.settle()
			w.untilEnded()
			if got := w.outcome(); got != tc.want {
				t.Errorf("got %+v, want %+v; %s", got, tc.want, w.describe())
			}
			if got := w.record(); got.Attempt != 2 || got.Key() != want.Key() || len(w.job().Status.History) != 1 {
				t.Errorf("attempt %d at %s, want 2 at %s; %s", got.Attempt, got.Key(), want.Key(), w.describe())
			}
		})
	}
}

// TestRejectedStatus_is_accepted_again shows that an UpgradeJob whose status the API server has accepted
// again keeps others from starting, also while its Lease is gone.
func TestRejectedStatus_is_accepted_again(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(maintenancev1beta1.GroupVersion.WithKind("UpgradeJob").GroupKind(), "job", nil)
	rejected := false
	w := newWorld(t, func(w *world) {
		w.plan = simulation.Fault{Outcome: simulation.Refuse, Err: invalid}.If(func(r simulation.Request) bool {
			return rejected && r.Kind == "UpgradeJob" && r.Subresource == "status"
		})
	})
	claimant := func() string {
		holder, err := w.holders.Claimant(t.Context(), client.ObjectKey{Namespace: namespace, Name: lock.Name}, lock.Holder{})
		if err != nil {
			t.Fatal(err)
		}
		if holder == nil {
			return ""
		}
		return holder.Name
	}
	w.Create(newJob(soon, delayWorker("2h", "150m")))
	w.untilStep("UpgradeCompleted")
	rejected = true
	w.cluster.ControlPlaneDuration = 10 * time.Minute // it goes on, but this cannot be saved
	w.RunTo(w.Now().Add(20 * time.Minute))
	if got := claimant(); got != "" {
		t.Errorf("while every status is rejected, %q keeps others from starting", got)
	}
	rejected = false
	w.RunTo(w.Now().Add(6 * time.Minute))
	if got := claimant(); got != "job" {
		t.Errorf("since the status is accepted, %q keeps others from starting; %s", got, w.describe())
	}
	w.untilEnded()
}

// TestRejectedStatus_withdraws_the_request ends an attempt whose request is pending: nothing would watch the
// update.
func TestRejectedStatus_withdraws_the_request(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(maintenancev1beta1.GroupVersion.WithKind("UpgradeJob").GroupKind(), "job", nil)
	left := 0
	w := newWorld(t, func(w *world) {
		w.plan = simulation.Fault{Outcome: simulation.Refuse, Err: invalid}.If(func(r simulation.Request) bool {
			if left == 0 || r.Kind != "UpgradeJob" || r.Subresource != "status" {
				return false
			}
			left--
			return true
		})
	})
	w.cluster.Rejection = "the signature is missing"
	w.Create(newJob(soon))
	w.untilStep("UpgradeCommenced")
	w.settle()
	if w.commits != 1 || w.cluster.ClusterVersion().Spec.DesiredUpdate == nil {
		t.Fatalf("nothing is requested; %s", w.describe())
	}
	left = 1
	w.untilEnded()
	if got := w.cluster.ClusterVersion().Spec.DesiredUpdate; got != nil || w.record().Reason != "StatusInvalid" {
		t.Errorf("%+v is requested; %s", got, w.describe())
	}
}

// TestRetry_answered_after_a_conflict has the first answer to a request refused, without a change that would
// trigger another pass.
func TestRetry_answered_after_a_conflict(t *testing.T) {
	t.Parallel()
	conflicts := 0
	w := newWorld(t, func(w *world) {
		w.plan = simulation.Fault{Outcome: simulation.Conflict}.If(func(r simulation.Request) bool {
			if conflicts == 0 || r.Kind != "UpgradeJob" || r.Subresource != "status" {
				return false
			}
			conflicts--
			return true
		})
	})
	w.cluster.Rejection = "the signature is missing"
	w.Create(newJob(soon))
	w.untilEnded()
	conflicts = 1
	w.annotate(maintenancev1beta1.RetryAnnotation, "again")
	w.settle()
	if conflicts > 0 || w.record().Attempt != 2 {
		t.Errorf("no second attempt; %s", w.describe())
	}
}
