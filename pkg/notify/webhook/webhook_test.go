// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// wall is the real clock, because another goroutine delivers.
var wall clock.RealClock

var (
	noon    = time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	subject = corev1.ObjectReference{
		APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster", UID: "u-1",
	}
)

// receiver stores the events that it accepts.
type receiver struct {
	mu       sync.Mutex
	tries    int
	answer   func(try int, w http.ResponseWriter) bool // reports whether it has responded; nil accepts all
	received []event.Event
	wrong    []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	body, _ := io.ReadAll(req.Body)
	if r.answer != nil && r.answer(r.tries, w) {
		return
	}
	var e event.Event
	if err := errors.Join(json.Unmarshal(body, &e), e.Validate()); err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	if got := req.Header.Get("Content-Type"); got != "application/cloudevents+json; charset=UTF-8" || req.Method != http.MethodPost {
		r.wrong = append(r.wrong, req.Method+" "+got)
	}
	r.received = append(r.received, e)
	w.WriteHeader(http.StatusAccepted)
}

func (r *receiver) reasons() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.received {
		var data webhook.Data
		_ = e.DataAs(&data)
		all = append(all, data.Reason)
	}
	return all
}

// receivedEvent is an event in a comparable form.
type receivedEvent struct {
	id, eventType string
	data          webhook.Data
}

func (h receivedEvent) summary() string {
	return h.eventType + " " + h.data.Severity + " " + h.data.Reason + ": " + h.data.Message
}

// last returns the last accepted event.
func (r *receiver) last(t *testing.T) receivedEvent {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.received[len(r.received)-1]
	h := receivedEvent{id: e.ID(), eventType: e.Type()}
	if err := e.DataAs(&h.data); err != nil {
		t.Fatal(err)
	}
	return h
}

func (r *receiver) attempts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// world is a webhook with a receiver. Its clock advances when the webhook waits for it.
type world struct {
	t        *testing.T
	receiver *receiver
	url      string
	clock    *testclock.FakeClock
	hook     *webhook.Webhook
	stop     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, receiver: &receiver{}, clock: testclock.NewFakeClock(noon)}
	server := httptest.NewServer(w.receiver)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.hook = w.newWebhook(httpclient.Options{URL: server.URL, Timeout: time.Second})
	t.Cleanup(func() {
		if w.stop != nil {
			w.stop()
		}
		for _, wrong := range w.receiver.wrong {
			t.Error(wrong)
		}
	})
	return w
}

func (w *world) source(context.Context) (string, error) { return "urn:uuid:cluster", nil }

func (w *world) newWebhook(o httpclient.Options) *webhook.Webhook {
	w.t.Helper()
	hook := webhook.New(webhook.Options{Source: w.source, Clock: w.clock})
	if err := hook.SetReceiver(&o); err != nil {
		w.t.Fatal(err)
	}
	return hook
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() { done <- w.hook.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		w.stop = nil
	}
}

// eventually advances the clock whenever the webhook waits for it, until the condition holds.
func (w *world) eventually(description string, condition func() bool) {
	w.t.Helper()
	for range 20000 {
		if condition() {
			return
		}
		if w.clock.HasWaiters() {
			w.clock.Step(time.Second)
		}
		wall.Sleep(100 * time.Microsecond)
	}
	w.t.Fatalf("it never was so: %s; %d tries, trouble: %v", description, w.receiver.attempts(), w.hook.LastError())
}

func (w *world) awaitDelivery() {
	w.t.Helper()
	w.eventually("all was delivered", func() bool { return w.hook.PendingError("u-1") == nil })
}

func (w *world) publish(n ...int) {
	w.t.Helper()
	for _, i := range n {
		if err := w.hook.Publish(w.t.Context(), subject, engine.Notification{ID: fmt.Sprint("id", i), Type: corev1.EventTypeNormal, Reason: fmt.Sprint("R", i), Message: "why"}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// milestones holds the milestones of the steps in these tests, as in the runbook.
var milestones = map[string]engine.Milestone{
	"StartedNotificationSent": engine.MilestoneStarted, "DelayedNotificationSent": engine.MilestoneDelayed,
	"CompletedNotificationSent": engine.MilestoneCompleted, "FailureNotificationSent": engine.MilestoneFailed,
	"CancellationNotificationSent": engine.MilestoneCancelled,
}

func step(name string, status metav1.ConditionStatus, reason, message string, finished bool) history.StepCondition {
	at := metav1.NewTime(noon)
	c := history.StepCondition{Type: name, Status: status, Reason: reason, Message: message, Milestone: milestones[name], StartTime: &at, LastTransitionTime: &at}
	if finished {
		c.CompleteTime = &at
	}
	return c
}

var record = history.Record{Version: "4.4.6", Attempt: 2, Conditions: []history.StepCondition{
	step("StartedNotificationSent", metav1.ConditionTrue, "Done", "the upgrade to 4.4.6 begins", true),
	step("VersionPinned", metav1.ConditionTrue, "Done", "pinned", true),
	step("ControlPlaneMaintWindow", metav1.ConditionTrue, "NotSilenced", "the alerts are not silenced", true),
	step("PreHealthCheck", metav1.ConditionUnknown, "CannotObserve", "no answer", false),
	step("CommenceUpgrade", metav1.ConditionFalse, "WindowMissed", "too late", true),
	step("TargetWithdrawn", metav1.ConditionFalse, "Started", "Takes back.", false),
	step("ClusterSettled", metav1.ConditionFalse, "Settling", "not yet", false),
	step("FailureNotificationSent", metav1.ConditionTrue, "Done", "the upgrade to 4.4.6 has failed", true),
	step("CompletedNotificationSent", metav1.ConditionTrue, "NotDelivered", "not sent in 5m", true),
}}

func TestWebhook_follows_the_order_of_the_record(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	for range 3 { // an unchanged record is published only once
		if err := w.hook.PublishSteps(t.Context(), subject, record); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitDelivery()
	var got []string
	for _, e := range w.receiver.received {
		var data webhook.Data
		if err := e.DataAs(&data); err != nil {
			t.Error(err)
		}
		got = append(got, strings.TrimPrefix(e.Type(), "io.openshift.managed.upgrade.")+"|"+data.Step+"|"+data.Severity+"|"+data.Reason+"|"+data.Message)
	}
	want := []string{
		"started||Normal|UpgradeStarted|the upgrade to 4.4.6 begins",
		"step.done|VersionPinned|Normal|Done|pinned",
		"step.skipped|ControlPlaneMaintWindow|Normal|NotSilenced|the alerts are not silenced",
		"step.unknown|PreHealthCheck|Warning|CannotObserve|no answer",
		"step.failed|CommenceUpgrade|Warning|WindowMissed|too late",
		"step.waiting|ClusterSettled|Normal|Settling|not yet",
		"failed||Warning|UpgradeFailed|the upgrade to 4.4.6 has failed",
		"completed||Normal|UpgradeCompleted|not sent in 5m",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestCloudEvent_format(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	one := record
	one.Conditions = one.Conditions[1:2]
	_ = w.hook.PublishSteps(t.Context(), subject, one)
	w.awaitDelivery()
	got, err := json.MarshalIndent(w.receiver.received[0], "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "specversion": "1.0",
  "id": "` + engine.NotificationID("u-1", "2", "4.4.6 VersionPinned", "StepDone") + `",
  "source": "urn:uuid:cluster",
  "type": "io.openshift.managed.upgrade.step.done",
  "subject": "UpgradeConfig/ns/cluster",
  "datacontenttype": "application/json",
  "time": "2020-05-01T12:00:00Z",
  "data": {
    "object": {
      "apiVersion": "upgrade.managed.openshift.io/v1alpha1",
      "kind": "UpgradeConfig",
      "namespace": "ns",
      "name": "cluster",
      "uid": "u-1"
    },
    "severity": "Normal",
    "reason": "Done",
    "message": "pinned",
    "version": "4.4.6",
    "attempt": 2,
    "step": "VersionPinned"
  }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestNotification_of_a_step_has_the_ID_of_the_record(t *testing.T) {
	t.Parallel()
	failure := step("VersionPinned", metav1.ConditionFalse, "WindowMissed", "too late", true)
	cancellation := step("VersionPinned", metav1.ConditionFalse, engine.ReasonCancelled, "it was deleted", true)
	suspension := step("NotSuspended", metav1.ConditionFalse, "Suspended", "a holiday", true)
	upgrade := history.Record{Version: "4.4.6", Attempt: 2}
	config := func(deps upgraders.Deps) (corev1.ObjectReference, engine.Runbook) {
		cfg := &upgradev1alpha1.UpgradeConfig{}
		cfg.Namespace, cfg.Name, cfg.UID = subject.Namespace, subject.Name, subject.UID
		cfg.Spec.Desired.Version, cfg.Status.History = upgrade.Version, []history.Record{upgrade}
		return subject, upgraders.OSD{Deps: deps}.Runbook(upgraders.AttemptAt(cfg))
	}
	job := func(deps upgraders.Deps) (corev1.ObjectReference, engine.Runbook) {
		ref := subject
		ref.APIVersion, ref.Kind = maintenancev1beta1.GroupVersion.String(), "UpgradeJob"
		job := &maintenancev1beta1.UpgradeJob{}
		job.Namespace, job.Name, job.UID = subject.Namespace, subject.Name, subject.UID
		job.Spec.DesiredVersion.Version = upgrade.Version
		return ref, upgraders.Job{Deps: deps}.Runbook(upgraders.Attempt{Job: job, Record: upgrade})
	}
	for name, tc := range map[string]struct {
		book      func(upgraders.Deps) (corev1.ObjectReference, engine.Runbook)
		step      string
		failure   *history.StepCondition
		outcome   engine.Outcome
		milestone engine.Milestone // as recorded by the engine; empty for the milestone of the step
		want      string
	}{
		"it began":       {book: config, step: "StartedNotificationSent", want: webhook.TypeStarted + " Normal UpgradeStarted: the upgrade to 4.4.6 starts"},
		"it is complete": {book: config, step: "CompletedNotificationSent", want: webhook.TypeCompleted + " Normal UpgradeCompleted: the upgrade to 4.4.6 is complete"},
		"it failed": {
			book: config, step: "FailureNotificationSent", failure: &failure,
			want: webhook.TypeFailed + " Warning UpgradeFailed: the upgrade to 4.4.6 has failed: VersionPinned: too late",
		},
		"it was cancelled": {
			book: config, step: "FailureNotificationSent", failure: &cancellation, milestone: engine.MilestoneCancelled,
			want: webhook.TypeCancelled + " Normal UpgradeCancelled: the upgrade to 4.4.6 was cancelled: VersionPinned: it was deleted",
		},
		"it was skipped": {
			book: job, step: "FailureNotificationSent", failure: &suspension, outcome: engine.OutcomeSkipped, milestone: engine.MilestoneSkipped,
			want: webhook.TypeSkipped + " Warning UpgradeSkipped: the upgrade to 4.4.6 was skipped: NotSuspended: a holiday",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ref, book := tc.book(upgraders.Deps{Notifier: w.hook})
			upgrade := upgrade
			steps := slices.Concat(book.Steps, book.Cleanup)
			sends := steps[slices.IndexFunc(steps, func(s engine.Step) bool { return s.Name == tc.step })]

			result, err := sends.Do(t.Context(), engine.Run{Failure: tc.failure, Outcome: tc.outcome})
			if err != nil || !result.Passed() {
				t.Fatalf("%s answered %v, %v", tc.step, result, err)
			}
			if tc.failure != nil {
				upgrade.Conditions = append(upgrade.Conditions, *tc.failure)
			}
			done := step(tc.step, metav1.ConditionTrue, result.Reason(), result.Message(), true)
			if tc.milestone != "" {
				done.Milestone = tc.milestone
			}
			upgrade.Conditions = append(upgrade.Conditions, done)
			w.start()
			w.awaitDelivery()
			direct := w.receiver.last(t)
			w.hook.Reset("u-1") // like a new process without state
			if err := w.hook.PublishSteps(t.Context(), ref, upgrade); err != nil {
				t.Fatal(err)
			}
			w.awaitDelivery()
			derived := w.receiver.last(t)
			if direct.summary() != tc.want || direct != derived {
				t.Errorf("the step published\n%+v\nand the record\n%+v\nwant the same of both:\n%s", direct, derived, tc.want)
			}
		})
	}
}

func TestMilestone_requires_a_sent_notification(t *testing.T) {
	t.Parallel()
	const done, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		steps []history.StepCondition
		want  string // of the last step
	}{
		"delay sent":                     {[]history.StepCondition{step("DelayedNotificationSent", done, "Done", "it has not commenced", true)}, "delayed Warning UpgradeDelayed: it has not commenced"},
		"delay not sent":                 {[]history.StepCondition{step("DelayedNotificationSent", done, "NotDelivered", "not sent", true)}, "delayed Warning UpgradeDelayed: not sent"},
		"there was no delay":             {[]history.StepCondition{step("DelayedNotificationSent", done, "NotDelayed", "in time", true)}, "step.skipped Normal NotDelayed: in time"},
		"the step was added later":       {[]history.StepCondition{step("DelayedNotificationSent", done, "AddedLater", "passed", true)}, "step.skipped Normal AddedLater: passed"},
		"start not sent":                 {[]history.StepCondition{step("StartedNotificationSent", no, "WindowMissed", "too late", true)}, "step.failed Warning WindowMissed: too late"},
		"cancelled before it was sent":   {[]history.StepCondition{step("StartedNotificationSent", no, engine.ReasonCancelled, "deleted", true)}, "step.failed Warning Cancelled: deleted"},
		"already reached":                {[]history.StepCondition{step("StartedNotificationSent", done, "AlreadyReached", "no record", true)}, "step.skipped Normal AlreadyReached: no record"},
		"being sent":                     {[]history.StepCondition{step("StartedNotificationSent", no, "NotDelivered", "not sent yet", false)}, "step.waiting Normal NotDelivered: not sent yet"},
		"end not sent":                   {[]history.StepCondition{step("PreHealthCheck", no, engine.ReasonCancelled, "deleted", true), step("CancellationNotificationSent", done, "NotDelivered", "not sent", true)}, "cancelled Normal UpgradeCancelled: not sent"},
		"the clean-up of a failure fell": {[]history.StepCondition{step("PreHealthCheck", no, "WindowMissed", "too late", true), step("ClusterSettled", no, engine.ReasonCancelled, "odd", true), step("FailureNotificationSent", done, "Done", "failed", true)}, "failed Warning UpgradeFailed: failed"},
		"what failed is not on record":   {[]history.StepCondition{step("FailureNotificationSent", done, "Done", "failed", true)}, "failed Warning UpgradeFailed: failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			if err := w.hook.PublishSteps(t.Context(), subject, history.Record{Version: "4.4.6", Attempt: 1, Conditions: tc.steps}); err != nil {
				t.Fatal(err)
			}
			w.awaitDelivery()
			if got := strings.TrimPrefix(w.receiver.last(t).summary(), "io.openshift.managed.upgrade."); got != tc.want {
				t.Errorf("published %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCloudEvents_have_the_IDs_of_Events(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	steps := record
	steps.Conditions = steps.Conditions[1:7]
	c := simulation.NewFakeClient(t)
	events := &notify.Events{Client: c, Clock: w.clock}
	both := notify.MultiPublisher{Events: events, Webhook: w.hook}
	if err := both.PublishSteps(t.Context(), subject, steps); err != nil {
		t.Fatal(err)
	}
	w.eventually("all was delivered", func() bool { return both.PendingError("u-1") == nil })
	var list corev1.EventList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, e := range list.Items {
		want = append(want, e.Name[strings.LastIndex(e.Name, ".")+1:])
	}
	for _, e := range w.receiver.received {
		got = append(got, e.ID())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 5 {
		t.Errorf("ids (-events +webhook):\n%s", diff)
	}
}

func TestDelivery_keeps_the_order_despite_failures(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"server error":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"unauthorized":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
		"not found":         func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"too many requests": func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"redirect":          func(w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(http.StatusFound) },
		"connection closed": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
				if try%3 == 0 {
					return false
				}
				answer(rw)
				return true
			}
			w.publish(1, 2, 3)
			w.start()
			w.publish(4, 5, 3)
			w.awaitDelivery()
			if diff := cmp.Diff([]string{"R1", "R2", "R3", "R4", "R5"}, w.receiver.reasons()); diff != "" {
				t.Errorf("taken (-want +got):\n%s", diff)
			}
			if err := w.hook.LastError(); err != nil {
				t.Errorf("there is trouble still: %v", err)
			}
		})
	}
}

func TestDelivery_errors_are_logged_until_they_change(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	codes := []int{503, 503, 503, 401, 401, 202, 422, 202, 503, 202}
	w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
		if codes[try-1] == http.StatusAccepted {
			return false
		}
		rw.WriteHeader(codes[try-1])
		return true
	}
	var logged []string
	w.hook = webhook.New(webhook.Options{
		Source: w.source, Clock: w.clock,
		Log: funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}),
	})
	w.setReceiver(&httpclient.Options{URL: w.url})
	w.publish(1, 2, 3, 4)
	w.start()
	w.awaitDelivery()
	w.stop()
	want := []string{
		"will be retried.*503", "will be retried.*401", "accepts notifications again",
		"rejected for good.*422.*R2", "accepts notifications again",
		"will be retried.*503", "accepts notifications again",
	}
	same := func(pattern, line string) bool { return regexp.MustCompile(pattern).MatchString(line) }
	if !slices.EqualFunc(want, logged, same) {
		t.Errorf("logged:\n%s\nwant\n%s", strings.Join(logged, "\n"), strings.Join(want, "\n"))
	}
}

func TestDelivery_accepted_with_an_invalid_body_is_not_repeated(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"no body":      func(http.ResponseWriter) {},
		"endless body": func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("x", 2<<20)) },
		"body cut off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusAccepted)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.receiver.answer = func(_ int, rw http.ResponseWriter) bool {
				answer(rw)
				return true
			}
			w.publish(1, 2)
			w.start()
			w.awaitDelivery()
			if attempts := w.receiver.attempts(); attempts != 2 {
				t.Errorf("%d tries for 2 notifications", attempts)
			}
		})
	}
}

func TestDelivery_rejected_for_good_does_not_block_others(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 413, 415, 422} {
		w := newWorld(t)
		w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
			if try == 2 {
				rw.WriteHeader(code)
			}
			return try == 2
		}
		w.publish(1, 2, 3)
		w.start()
		w.awaitDelivery()
		if diff := cmp.Diff([]string{"R1", "R3"}, w.receiver.reasons()); diff != "" || w.receiver.attempts() != 3 {
			t.Errorf("%d: taken (-want +got):\n%s", code, diff)
		}
		checkMetrics(t, w.hook, 2, 1, 1, 0)
	}
}

// checkMetrics checks the metrics.
func checkMetrics(t *testing.T, hook *webhook.Webhook, delivered, failures, refused, pending float64) {
	t.Helper()
	got := map[string]float64{}
	for _, family := range gather(t, hook) {
		m := family.GetMetric()[0]
		got[family.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	want := map[string]float64{
		"managed_upgrade_notifications_delivered_total": delivered,
		"managed_upgrade_notification_failures_total":   failures,
		"managed_upgrade_notifications_refused_total":   refused,
		"managed_upgrade_notifications_pending":         pending,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func gather(t *testing.T, hook *webhook.Webhook) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(hook)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestWebhook_metrics_pass_promlint(t *testing.T) {
	t.Parallel()
	problems, err := promlint.NewWithMetricFamilies(gather(t, newWorld(t).hook)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestReceiver_down_does_not_block_publishing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer = func(_ int, rw http.ResponseWriter) bool {
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(rw, "\x1b[31mmaintenance")
		return true
	}
	w.start()
	began := wall.Now()
	w.publish(1, 2)
	if took := wall.Since(began); took > 100*time.Millisecond {
		t.Errorf("publishing took %s", took)
	}
	w.eventually("it was tried", func() bool { return w.hook.LastError() != nil })
	const want = "2 notifications have not been delivered yet: requesting %s/: responded 503 Service Unavailable: maintenance"
	if err := w.hook.PendingError("u-1"); err == nil || err.Error() != fmt.Sprintf(want, strings.TrimPrefix(w.url, "http://")) {
		t.Errorf("got %v", err)
	}
	if err := w.hook.PendingError("u-2"); err != nil {
		t.Errorf("another was not published: %v", err)
	}
}

func TestDelivery_backoff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var at []time.Duration
	w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
		at = append(at, w.clock.Now().Sub(noon))
		if try == 3 {
			rw.Header().Set("Retry-After", "60")
		}
		if try == 4 {
			rw.Header().Set("Retry-After", "86400")
		}
		rw.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	w.publish(1)
	w.start()
	w.eventually("there were 12 tries", func() bool { return w.receiver.attempts() >= 12 })
	w.stop()
	s := time.Second
	want := []time.Duration{0, s, 3 * s, 63 * s, 363 * s, 379 * s, 411 * s, 475 * s, 603 * s, 859 * s, 1159 * s, 1459 * s}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("tried at (-want +got):\n%s", diff)
	}
}

func TestQueue_is_bounded_and_the_rest_is_published_later(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := history.Record{Version: "4.4.6", Attempt: 1}
	for i := range 300 {
		long.Conditions = append(long.Conditions, step(fmt.Sprintf("Step%03d", i), metav1.ConditionTrue, "Done", "done", true))
	}
	for range 3 {
		if err := w.hook.PublishSteps(t.Context(), subject, long); err == nil {
			t.Error("it took them all")
		}
	}
	checkMetrics(t, w.hook, 0, 0, 0, 256)
	w.publish(1) // a notice without a record still fits
	w.start()
	w.eventually("the queue is empty", func() bool { return w.receiver.attempts() == 257 })
	w.eventually("what did not fit is pending", func() bool {
		err := w.hook.PendingError("u-1")
		return err != nil && err.Error() == "too many notifications are waiting for the receiver"
	})
	if err := w.hook.PublishSteps(t.Context(), subject, long); err != nil {
		t.Error(err)
	}
	w.awaitDelivery()
	var got []string
	for _, e := range w.receiver.received {
		var data webhook.Data
		_ = e.DataAs(&data)
		if data.Step != "" {
			got = append(got, data.Step)
		}
	}
	if len(got) != 300 || !slices.IsSorted(got) {
		t.Errorf("%d were taken: %v", len(got), got)
	}
}

func TestRestart_sends_everything_again_with_the_same_IDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
		if try > 3 && try < 6 {
			rw.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	_ = w.hook.PublishSteps(t.Context(), subject, record)
	w.start()
	w.eventually("some were tried", func() bool { return w.receiver.attempts() >= 4 })
	w.stop() // the process ends and loses the queue
	w.hook = w.newWebhook(httpclient.Options{URL: w.url})
	_ = w.hook.PublishSteps(t.Context(), subject, record)
	w.start()
	w.awaitDelivery()
	seen := map[string]bool{}
	var order []string
	for _, e := range w.receiver.received {
		if !seen[e.ID()] {
			order = append(order, strings.TrimPrefix(e.Type(), "io.openshift.managed.upgrade."))
		}
		seen[e.ID()] = true
	}
	want := []string{"started", "step.done", "step.skipped", "step.unknown", "step.failed", "step.waiting", "failed", "completed"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("taken, each once (-want +got):\n%s", diff)
	}
}

func TestReset_allows_repetition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.publish(1, 1)
	w.hook.Reset("u-1")
	w.publish(1)
	w.awaitDelivery()
	if got := w.receiver.reasons(); len(got) != 2 {
		t.Errorf("taken: %v", got)
	}
}

func TestDelivery_waits_for_the_source(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	calls := 0
	source := func(context.Context) (string, error) {
		if calls++; calls < 3 {
			return "", errors.New("no cluster version")
		}
		return "urn:uuid:late", nil
	}
	w.hook = webhook.New(webhook.Options{Source: source, Clock: w.clock})
	if err := w.hook.SetReceiver(&httpclient.Options{URL: w.url}); err != nil {
		t.Fatal(err)
	}
	w.publish(1)
	w.start()
	w.awaitDelivery()
	if w.receiver.attempts() != 1 || w.receiver.received[0].Source() != "urn:uuid:late" {
		t.Errorf("taken: %v", w.receiver.received)
	}
}

func TestDelivery_over_TLS_with_a_token(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var token string
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		w.receiver.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	file := func(data []byte) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w.hook = w.newWebhook(httpclient.Options{URL: server.URL, CAFile: file(ca), TokenFile: file([]byte("secret"))})
	w.publish(1)
	w.start()
	w.awaitDelivery()
	if token != "Bearer secret" {
		t.Errorf("the token was %q", token)
	}
}

func TestDelivery_sanitizes_text(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	_ = w.hook.Publish(t.Context(), subject, engine.Notification{ID: "id", Type: corev1.EventTypeWarning, Reason: "R", Message: "a\x00\xff" + strings.Repeat("x", 5000)})
	w.awaitDelivery()
	var data webhook.Data
	if err := w.receiver.received[0].DataAs(&data); err != nil || len(data.Message) > 2060 || !strings.HasPrefix(data.Message, "a x") {
		t.Errorf("%v: %q", err, data.Message)
	}
}

func TestTypes_are_documented_once(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range webhook.Types() {
		if seen[row[0]] || row[1] == "" {
			t.Errorf("%v", row)
		}
		seen[row[0]] = true
	}
	for _, one := range []string{
		webhook.TypeStarted, webhook.TypeDelayed, webhook.TypeCompleted, webhook.TypeFailed, webhook.TypeCancelled, webhook.TypeNotice,
		webhook.TypeStalled, webhook.TypeRecovered, webhook.TypeSkipped, webhook.TypeStepWaiting, webhook.TypeStepUnknown, webhook.TypeStepDone, webhook.TypeStepSkipped, webhook.TypeStepFailed,
	} {
		if !seen[one] {
			t.Errorf("%s is not documented", one)
		}
	}
}

func TestTypes_have_examples(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, row := range webhook.Types() {
		data, err := webhook.Example(row[0])
		if err != nil {
			t.Fatal(err)
		}
		var e event.Event
		var d webhook.Data
		if err := errors.Join(json.Unmarshal(data, &e), e.Validate(), e.DataAs(&d)); err != nil {
			t.Errorf("%s: %v", row[0], err)
		}
		if isStep := strings.Contains(row[0], ".step."); e.Type() != row[0] || ids[e.ID()] || isStep != (d.Step != "") || d.Reason == "" || d.Version == "" || d.Attempt == 0 {
			t.Errorf("%s: %s", row[0], data)
		}
		ids[e.ID()] = true
	}
}
