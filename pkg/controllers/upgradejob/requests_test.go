// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// annotate requests something of the UpgradeJob.
func (w *world) annotate(key, token string) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.job(), func(job *maintenancev1beta1.UpgradeJob) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, token) })
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.Rejection = "the signature is missing"
	w.Create(newJob())
	w.annotate(maintenancev1beta1.RetryAnnotation, "from the template")
	w.untilEnded()
	w.RunFor(time.Hour)
	if job := w.job(); len(job.Status.History) != 1 || job.Status.Retry == nil || job.Status.Retry.Token != "from the template" {
		t.Fatalf("a request that was made before the end has started another attempt: %s", w.describe())
	}

	w.cluster.Rejection = ""
	w.cluster.ReportHealthy()
	w.annotate(maintenancev1beta1.RetryAnnotation, "monday")
	requested := w.Now()
	w.settle()
	if record := w.record(); record.Attempt != 2 || record.UpgradeAt.Sub(requested) > time.Minute || record.CompleteTime != nil {
		t.Fatalf("attempt %d at %s, %s", record.Attempt, record.UpgradeAt, w.describe())
	}
	w.untilEnded()
	job := w.job()
	if w.record().Phase != history.PhaseUpgraded || len(job.Status.History) != 2 || job.Status.Retry.Token != "monday" {
		t.Errorf("after the retry: %d attempts, %+v, %s", len(job.Status.History), job.Status.Retry, w.describe())
	}
	if first := job.Status.History[1]; first.Attempt != 1 || first.Phase != history.PhaseFailed || first.Reason != "TargetRefused" {
		t.Errorf("the first attempt is %d, %s, %s", first.Attempt, first.Phase, first.Reason)
	}
	w.RunFor(time.Hour)
	if len(w.job().Status.History) != 2 {
		t.Error("one request has started two attempts")
	}
}

// A retry has a window of the same length as the first attempt, from the request on.
func TestRetry_window(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.Unresponsive = true
	w.Create(newJob())
	w.untilEnded()
	w.annotate(maintenancev1beta1.RetryAnnotation, "again")
	requested := w.Now()
	w.settle()
	w.untilEnded()
	record := w.record()
	if took := record.CompleteTime.Sub(requested); record.Phase != history.PhaseSkipped || record.Attempt != 2 || took < time.Hour || took > 62*time.Minute {
		t.Errorf("attempt %d ended after %s: %s", record.Attempt, took, w.describe())
	}
}

// A request is answered whatever another client has written into the history, and whatever of it no
// longer fits into the object.
func TestRetry_of_an_attempt_that_cannot_stay_as_it_is(t *testing.T) {
	t.Parallel()
	tooLarge := apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	invalid := apierrors.NewInvalid(maintenancev1beta1.GroupVersion.WithKind("UpgradeJob").GroupKind(), "job", field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
	for name, tc := range map[string]struct {
		attempt  int32
		err      error
		refuses  int
		attempts []int32
	}{
		"history of one attempt":           {attempt: 1, attempts: []int32{2, 1}},
		"number that is the greatest":      {attempt: math.MaxInt32, attempts: []int32{math.MaxInt32}},
		"object that is too large once":    {attempt: 1, err: tooLarge, refuses: 1, attempts: []int32{2, 1}},
		"object that is too large for two": {attempt: 1, err: tooLarge, refuses: 2, attempts: []int32{2}},
		"earlier attempt that is invalid":  {attempt: 1, err: invalid, refuses: 2, attempts: []int32{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.cluster.Rejection = "the signature is missing"
			w.Create(newJob())
			w.untilEnded()
			job := w.job()
			job.Status.History[0].Attempt = tc.attempt
			w.UpdateStatus(job)
			w.settle()
			refused := 0
			w.Writes = func(r simulation.Request) simulation.Fault {
				if refused < tc.refuses && r.Kind == "UpgradeJob" && r.Subresource == "status" {
					refused++
					return simulation.Fault{Outcome: simulation.Refuse, Err: tc.err}
				}
				return simulation.Fault{}
			}
			w.cluster.Rejection = ""
			w.cluster.ReportHealthy()
			w.annotate(maintenancev1beta1.RetryAnnotation, "monday")
			w.settle()
			w.untilEnded()
			var attempts []int32
			for _, record := range w.job().Status.History {
				attempts = append(attempts, record.Attempt)
			}
			if diff := cmp.Diff(tc.attempts, attempts); diff != "" || w.record().Phase != history.PhaseUpgraded || refused != tc.refuses {
				t.Errorf("%d writes are refused; attempts (-want +got):\n%s\n%s", refused, diff, w.describe())
			}
		})
	}
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	acknowledged := func(w *world) string {
		if c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionAcknowledged); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return ""
	}
	w := newWorld(t)
	w.cluster.Rejection = "the signature is missing"
	w.Create(newJob())
	w.annotate(maintenancev1beta1.AcknowledgedAnnotation, "too early")
	w.untilEnded()
	if got := acknowledged(w); got != "False BeforeEnd" {
		t.Errorf("before the end: %q", got)
	}
	w.annotate(maintenancev1beta1.AcknowledgedAnnotation, "seen by Ada")
	w.settle()
	if got := acknowledged(w); got != "True Acknowledged" {
		t.Errorf("after the end: %q", got)
	}
	w.annotate(maintenancev1beta1.RetryAnnotation, "again")
	w.settle()
	w.untilEnded()
	if got := acknowledged(w); got != "False BeforeEnd" || w.record().Attempt != 2 {
		t.Errorf("the end of attempt %d was acknowledged before it: %q", w.record().Attempt, got)
	}
}

// Nothing is written, and the API server is not read, from the creation of an UpgradeJob to its start.
func TestPending_is_quiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob(delayWorker("1h", "2h")))
	w.RunTo(noon.Add(time.Minute))
	job := w.job()
	if w.record().Phase != history.PhasePending || !strings.Contains(w.message(), "starts at 2026-03-01T14:00:00Z") {
		t.Errorf("a pending UpgradeJob: %s", w.describe())
	}
	if !meta.IsStatusConditionTrue(job.Status.Conditions, maintenancev1beta1.ConditionPreCheckPassed) {
		t.Errorf("what would be in its way is not shown: %s", w.describe())
	}
	before := len(w.Requests)
	w.RunTo(startAfter.Add(-time.Second))
	if made := w.Requests[before:]; len(made) > 0 {
		t.Errorf("%d requests while it waits: %q", len(made), made)
	}
	if w.job().ResourceVersion != job.ResourceVersion {
		t.Error("the UpgradeJob was written while it waits")
	}
}

// A pre-check ends nothing, so what it finds is not confirmed by the API server.
func TestPending_is_quiet_with_something_in_the_way(t *testing.T) {
	t.Parallel()
	for name, obstruct := range map[string]func(*world){
		"suspended": func(w *world) { w.Create(window(unchanged)) },
		"withdrawn": func(w *world) { w.cluster.Offer("4.4.7") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			obstruct(w)
			w.Create(newJob())
			w.RunTo(noon.Add(3 * time.Minute))
			if !meta.IsStatusConditionFalse(w.job().Status.Conditions, maintenancev1beta1.ConditionPreCheckPassed) {
				t.Fatalf("what is in its way is not shown: %s", w.describe())
			}
			before := len(w.Requests)
			w.RunTo(startAfter.Add(-time.Second))
			if made := w.Requests[before:]; len(made) > 0 {
				t.Errorf("%d requests while it waits: %q", len(made), slices.Compact(made))
			}
		})
	}
}

// message returns the message of the condition Progressing.
func (w *world) message() string {
	if c := meta.FindStatusCondition(w.job().Status.Conditions, maintenancev1beta1.ConditionProgressing); c != nil {
		return c.Message
	}
	return ""
}

func TestPending_shows_what_is_in_the_way(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		job      []func(*maintenancev1beta1.UpgradeJob)
		cluster  func(*world)
		accepted metav1.ConditionStatus
		want     string
	}{
		"withdrawn": {cluster: func(w *world) { w.cluster.Offer("4.4.7") }, accepted: metav1.ConditionTrue, want: "VersionStillAvailable"},
		"suspended": {cluster: func(w *world) { w.Create(window(unchanged)) }, accepted: metav1.ConditionTrue, want: "NotSuspended"},
		"unhealthy": {cluster: func(w *world) {
			w.cluster.ChangeOperator(func(o *configv1.ClusterOperator) {
				o.Status.Conditions = append(o.Status.Conditions[:1], configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue})
			})
		}, accepted: metav1.ConditionTrue, want: "PreHealthCheck"},
		"invalid pools": {job: []func(*maintenancev1beta1.UpgradeJob){delayWorker("1h", "2h"), delayWorker("1h", "2h")}, accepted: metav1.ConditionFalse, want: "PoolsPaused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Create(newJob(tc.job...))
			if tc.cluster != nil {
				tc.cluster(w)
			}
			w.RunTo(noon.Add(3 * time.Minute))
			conditions := w.job().Status.Conditions
			if c := meta.FindStatusCondition(conditions, maintenancev1beta1.ConditionPreCheckPassed); c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.want {
				t.Errorf("PreCheckPassed is %+v", c)
			}
			if c := meta.FindStatusCondition(conditions, maintenancev1beta1.ConditionAccepted); c == nil || c.Status != tc.accepted {
				t.Errorf("Accepted is %+v", c)
			}
			if !strings.HasPrefix(w.message(), "pre-check failed: "+tc.want) {
				t.Errorf("the message is %q", w.message())
			}
			if !slices.Contains(w.events(), "Warning PreCheckFailed") {
				t.Errorf("the Events are %q", w.events())
			}
		})
	}
}

// A request of another client for the same version is not the upgrade of an UpgradeJob. Waiting for it
// writes nothing but the heartbeat.
func TestRequestOfAnotherClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.Unresponsive = true
	w.Create(newJob())
	w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Version: desired} })
	w.RunTo(startAfter.Add(10 * time.Minute))
	w.Requests = nil
	w.RunTo(startAfter.Add(30 * time.Minute))
	if len(w.Requests) > 4 {
		t.Errorf("%d requests in 20 minutes: %q", len(w.Requests), w.Requests[:min(len(w.Requests), 10)])
	}
	if c := w.record().Conditions[len(w.record().Conditions)-1]; c.Type != "UpgradeCommenced" || c.Reason != "AnotherUpdateInProgress" {
		t.Errorf("the step is %s, %s: %s", c.Type, c.Reason, c.Message)
	}
	w.untilEnded()
	want := outcome{phase: history.PhaseSkipped, reason: "Expired", step: "UpgradeCommenced"}
	if got := w.outcome(); got != want {
		t.Errorf("got %+v, want %+v; %s", got, want, w.describe())
	}
}

// A request that waits is withdrawn although another client has removed the finalizer of the UpgradeJob.
func TestRequestOfAnUpgradeJobThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cluster.Unresponsive = true
	w.Create(newJob())
	w.untilStep("UpgradeCommenced")
	if w.cluster.ClusterVersion().Spec.DesiredUpdate == nil {
		t.Fatalf("nothing is requested; %s", w.describe())
	}
	w.Delete(w.job())
	simulation.Edit(w.Harness, w.job(), func(job *maintenancev1beta1.UpgradeJob) { job.Finalizers = nil })
	w.settle()
	if update, holder := w.cluster.ClusterVersion().Spec.DesiredUpdate, w.lockHolder(); update != nil || holder != "" {
		t.Errorf("the request is %+v, the lock is held by %q", update, holder)
	}
}

// The figures of a slot without hooks: at most two writes of the status per step, 15 others, and few
// reads that no cache serves.
func TestWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob())
	w.untilEnded()
	count := map[string]int{}
	for _, request := range w.Requests {
		count[request]++
	}
	steps := len(w.record().Conditions)
	others, reads := 0, 0
	for request, n := range count {
		if verb, _, _ := strings.Cut(request, " "); verb == "get" || verb == "list" {
			reads += n
		}
		if verb, kind, _ := strings.Cut(request, " "); verb != "get" && verb != "list" && kind != "UpgradeJob" && kind != "Event" {
			others += n
		}
	}
	t.Logf("%d steps: %v", steps, count)
	if count["patch UpgradeJob"] > 2*steps+2 {
		t.Errorf("%d writes of the UpgradeJob in %d steps, the finalizer included", count["patch UpgradeJob"], steps)
	}
	if others > 15 || count["patch ClusterVersion"] != 1 {
		t.Errorf("%d other writes: %v", others, count)
	}
	if reads > 4 || count["get Lease"] > 1 { // of the Lease once, to learn whether an upgrade continues without its object
		t.Errorf("%d reads from the API server: %v", reads, count)
	}
}

// Each metric of an UpgradeJob has a value while it is in progress, and none is left behind.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(newJob())
	values := func() map[string]float64 {
		found := map[string]float64{}
		for _, s := range w.Series() {
			found[s.Name] += s.Value
		}
		return found
	}
	w.RunTo(startAfter.Add(-time.Minute))
	pending := values()
	if pending["job_start_after_timestamp_seconds"] != float64(startAfter.Unix()) ||
		pending["job_start_before_timestamp_seconds"] != float64(startAfter.Add(time.Hour).Unix()) {
		t.Errorf("while it is pending: %v", pending)
	}
	w.untilEnded()
	ended := values()
	if _, stale := ended["job_start_after_timestamp_seconds"]; stale || ended["successes_total"] != 1 {
		t.Errorf("after the end: %v", ended)
	}
	w.Delete(w.job())
	w.settle()
	if _, stale := values()["phase"]; stale {
		t.Error("a deleted UpgradeJob has series")
	}
}
