// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var (
	noon    = time.Date(2020, 6, 20, 12, 0, 0, 0, time.UTC)
	subject = corev1.ObjectReference{
		APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig",
		Namespace: "upgrades", Name: "example", UID: types.UID("1-2-3"),
	}
	errDown = errors.New("no answer")
)

// receiver stores the received Events in order and rejects some of them.
type receiver struct {
	client.Client
	arrived []corev1.Event
	tries   int
	down    func(corev1.Event) bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Client = interceptor.NewClient(simulation.NewFakeClient(t), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			r.tries++
			event, ok := obj.(*corev1.Event)
			if !ok || r.down != nil && r.down(*event) {
				return errDown
			}
			if err := c.Create(ctx, event, opts...); err != nil {
				return err
			}
			r.arrived = append(r.arrived, *event)
			return nil
		},
	})
	return r
}

func (r *receiver) events() *notify.Events {
	return &notify.Events{Client: r.Client, Clock: clocktesting.NewFakePassiveClock(noon)}
}

// messages returns the received messages with their types and reasons.
func (r *receiver) messages() []string {
	var all []string
	for _, event := range r.arrived {
		all = append(all, event.Type+" "+event.Reason+" "+event.Message)
	}
	return all
}

// upgrade returns a record with a step of each kind.
func upgrade(version string, attempt int32) history.Record {
	completeTime := new(metav1.NewTime(noon))
	return history.Record{Version: version, Attempt: attempt, Conditions: []history.StepCondition{
		{Type: "Done", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, Message: "done", CompleteTime: completeTime},
		{Type: "Skipped", Status: metav1.ConditionTrue, Reason: "NotAsked", Message: "left out", CompleteTime: completeTime},
		{Type: "Failed", Status: metav1.ConditionFalse, Reason: "TooLate", Message: "given up", CompleteTime: completeTime},
		{Type: "Unseen", Status: metav1.ConditionUnknown, Reason: "CannotObserve", Message: "no answer"},
		{Type: "Waiting", Status: metav1.ConditionFalse, Reason: "NotYet", Message: "2 of 3"},
		{Type: "Begun", Status: metav1.ConditionFalse, Reason: engine.ReasonStarted, Message: "begins"},
	}}
}

var published = []string{
	"Normal StepDone Done: done (upgrade to 4.4.6)",
	"Normal StepSkipped Skipped: left out (upgrade to 4.4.6)",
	"Warning StepFailed Failed: given up (upgrade to 4.4.6)",
	"Warning StepUnknown Unseen: no answer (upgrade to 4.4.6)",
	"Normal StepWaiting Waiting: 2 of 3 (upgrade to 4.4.6)",
}

func publishSteps(t *testing.T, events *notify.Events, record history.Record) {
	t.Helper()
	if err := events.PublishSteps(t.Context(), subject, record); err != nil {
		t.Fatal(err)
	}
}

func TestEvents_follow_the_order_of_the_record(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	publishSteps(t, r.events(), upgrade("4.4.6", 1))
	if diff := cmp.Diff(published, r.messages()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	first := r.arrived[0]
	if diff := cmp.Diff(subject, first.InvolvedObject); diff != "" {
		t.Errorf("objects of the Events (-want +got):\n%s", diff)
	}
	at := metav1.NewTime(noon)
	if first.Namespace != subject.Namespace || first.Source.Component != notify.Component || first.Count != 1 ||
		first.FirstTimestamp.Unix() != at.Unix() || first.LastTimestamp.Unix() != at.Unix() {
		t.Errorf("the Event is not what kubectl would show: %+v", first)
	}
}

func TestEvents_are_not_repeated(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	events := r.events()
	publishSteps(t, events, upgrade("4.4.6", 1))
	tries := r.tries

	t.Log("in a steady state nothing is asked of the API server")
	publishSteps(t, events, upgrade("4.4.6", 1))
	if r.tries != tries {
		t.Errorf("%d requests in a steady state", r.tries-tries)
	}

	t.Log("another message alone is no news")
	changed := upgrade("4.4.6", 1)
	changed.Conditions[4].Message, changed.Conditions[4].Reason = "3 of 3", "AlmostThere"
	publishSteps(t, events, changed)
	if r.tries != tries {
		t.Errorf("%d requests for another message", r.tries-tries)
	}

	t.Log("after a crash the ids are the same, and what exists already counts as published")
	publishSteps(t, r.events(), upgrade("4.4.6", 1))
	if diff := cmp.Diff(published, r.messages()); diff != "" {
		t.Errorf("published after a crash (-want +got):\n%s", diff)
	}

	t.Log("what is forgotten is published again and exists already")
	events.Reset(string(subject.UID))
	tries = r.tries
	publishSteps(t, events, upgrade("4.4.6", 1))
	if r.tries == tries || len(r.arrived) != len(published) {
		t.Errorf("%d requests and %d Events after it was forgotten, want some and %d", r.tries-tries, len(r.arrived), len(published))
	}
}

func TestEvents_of_new_steps_are_published(t *testing.T) {
	t.Parallel()
	another := subject
	another.UID = "4-5-6"
	for name, again := range map[string]func(*notify.Events) error{
		"another attempt":  func(e *notify.Events) error { return e.PublishSteps(t.Context(), subject, upgrade("4.4.6", 2)) },
		"another version":  func(e *notify.Events) error { return e.PublishSteps(t.Context(), subject, upgrade("4.4.7", 1)) },
		"recreated object": func(e *notify.Events) error { return e.PublishSteps(t.Context(), another, upgrade("4.4.6", 1)) },
	} {
		r := newReceiver(t)
		events := r.events()
		publishSteps(t, events, upgrade("4.4.6", 1))
		if err := again(events); err != nil {
			t.Fatal(err)
		}
		if len(r.arrived) != 2*len(published) {
			t.Errorf("%s: %d Events arrived, want %d", name, len(r.arrived), 2*len(published))
		}
	}

	r := newReceiver(t)
	events := r.events()
	record := upgrade("4.4.6", 1)
	publishSteps(t, events, record)
	record.Conditions[4] = history.StepCondition{Type: "Waiting", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, Message: "3 of 3", CompleteTime: new(metav1.NewTime(noon))}
	publishSteps(t, events, record)
	if diff := cmp.Diff(append(published[:len(published):len(published)], "Normal StepDone Waiting: 3 of 3 (upgrade to 4.4.6)"), r.messages()); diff != "" {
		t.Errorf("published about a step that continued (-want +got):\n%s", diff)
	}
}

func TestEvents_that_failed_are_published_later_in_order(t *testing.T) {
	t.Parallel()
	for lost := range published {
		r := newReceiver(t)
		events := r.events()
		r.down = func(event corev1.Event) bool { return strings.Contains(published[lost], event.Message) }
		err := events.PublishSteps(t.Context(), subject, upgrade("4.4.6", 1))
		if !errors.Is(err, errDown) || !strings.HasPrefix(err.Error(), "writing the Event Step") || !strings.Contains(err.Error(), "UpgradeConfig example") {
			t.Errorf("got %v, want to hear which event could not be written", err)
		}
		if diff := cmp.Diff(published[:lost], r.messages()[:len(r.arrived):len(r.arrived)], cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Errorf("published before one that was lost (-want +got):\n%s", diff)
		}
		r.down = nil
		publishSteps(t, events, upgrade("4.4.6", 1))
		if diff := cmp.Diff(published, r.messages()); diff != "" {
			t.Errorf("published in the end (-want +got):\n%s", diff)
		}
	}
}

func TestEvent_is_valid(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]string{
		"a short name":                    "a",
		"the longest name":                strings.Repeat("a", 253),
		"a name that is cut at a hyphen":  strings.Repeat("a", 235) + "-" + strings.Repeat("b", 17),
		"a name that is cut at a dot":     strings.Repeat("a", 235) + "." + strings.Repeat("b", 17),
		"a name that is cut among dashes": strings.Repeat("a", 200) + strings.Repeat("-", 52) + "b",
	} {
		r := newReceiver(t)
		ref := subject
		ref.Name, ref.Namespace = named, ""
		id := engine.NotificationID("uid", "1", "step", "what")
		message := strings.Repeat("ü", 2000)
		if err := r.events().Publish(t.Context(), ref, engine.Notification{ID: id, Type: corev1.EventTypeNormal, Reason: "Reason", Message: message}); err != nil {
			t.Fatal(err)
		}
		event := r.arrived[0]
		if wrong := validation.IsDNS1123Subdomain(event.Name); len(wrong) > 0 || !strings.HasSuffix(event.Name, "."+id) {
			t.Errorf("%s: the Event's name is %q: %v", name, event.Name, wrong)
		}
		if len(event.Message) > 1024 || !strings.HasSuffix(event.Message, "ü…") {
			t.Errorf("%s: the message has %d bytes and ends with %q", name, len(event.Message), event.Message[len(event.Message)-5:])
		}
		if event.Namespace != metav1.NamespaceDefault {
			t.Errorf("%s: an Event about what has no namespace is in %q", name, event.Namespace)
		}
	}
}

func TestEvent_IDs_are_stable_and_unique(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, id := range map[string]string{
		"the first":       engine.NotificationID("u", "1", "s", "x"),
		"another uid":     engine.NotificationID("v", "1", "s", "x"),
		"another attempt": engine.NotificationID("u", "2", "s", "x"),
		"another step":    engine.NotificationID("u", "1", "t", "x"),
		"another status":  engine.NotificationID("u", "1", "s", "y"),
		"moved quotes":    engine.NotificationID("u", "1", `s" "x`, ""),
	} {
		if former, taken := seen[id]; taken {
			t.Errorf("%s has the id of %s", name, former)
		}
		seen[id] = name
	}
	if again := engine.NotificationID("u", "1", "s", "x"); seen[again] != "the first" {
		t.Error("the same has two ids")
	}
}

// TestEventsCarryTheTimesOfTheRecord publishes a record long after its steps have ended.
func TestEventsCarryTheTimesOfTheRecord(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	record := upgrade("4.4.6", 1)
	for i := range record.Conditions {
		at := metav1.NewTime(noon.Add(-time.Duration(10-i) * time.Minute))
		record.Conditions[i].StartTime, record.Conditions[i].LastTransitionTime = &at, &at
		if record.Conditions[i].CompleteTime != nil {
			record.Conditions[i].CompleteTime = &at
		}
	}
	publishSteps(t, r.events(), record)
	for i, event := range r.arrived {
		want := noon.Add(-time.Duration(10-i) * time.Minute)
		if got := event.LastTimestamp.Time; !got.Truncate(time.Second).Equal(want) || !event.FirstTimestamp.Equal(&event.LastTimestamp) || !event.EventTime.Truncate(time.Second).Equal(want) {
			t.Errorf("%s: got %s and %s, want %s", event.Message, got, event.EventTime, want)
		}
	}
}

// TestEventsSortAsTheirSteps publishes steps that started in the same second, and lists their
// Events as clients do.
func TestEventsSortAsTheirSteps(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	at := metav1.NewTime(noon)
	record := history.Record{Version: "4.4.6", Attempt: 1}
	var want []string
	for i := range 20 {
		name := fmt.Sprintf("Step%c", 'Z'-i)
		want = append(want, name+": x (upgrade to 4.4.6)")
		record.Conditions = append(record.Conditions, history.StepCondition{
			Type: name, Status: metav1.ConditionTrue, Reason: engine.ReasonDone, Message: "x", StartTime: &at, CompleteTime: &at,
		})
	}
	waiting := record.DeepCopy()
	waiting.Conditions = waiting.Conditions[:1]
	waiting.Conditions[0].CompleteTime, waiting.Conditions[0].Status, waiting.Conditions[0].Reason = nil, metav1.ConditionFalse, "NotYet"
	waiting.Conditions[0].LastTransitionTime = &at
	events := r.events()
	publishSteps(t, events, *waiting)
	publishSteps(t, events, record)
	want = append([]string{want[0]}, want...) // it was waiting and is now done

	var list corev1.EventList
	if err := r.List(t.Context(), &list); err != nil { // the API server lists by name
		t.Fatal(err)
	}
	for order, less := range map[string]func(a, b corev1.Event) int{
		"by name": func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) },
		"by time": func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) },
	} {
		var got []string
		for _, event := range slices.SortedStableFunc(slices.Values(list.Items), less) {
			got = append(got, event.Message)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
	}
}

// TestEventsAreNotRepeatedAfterTheirTTL restarts the process after the API server has removed all
// Events.
func TestEventsAreNotRepeatedAfterTheirTTL(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	at := func(minutes int) *metav1.Time {
		return new(metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)))
	}
	clock := clocktesting.NewFakePassiveClock(noon)
	process := func() *notify.Events { return &notify.Events{Client: r.Client, Clock: clock} }
	record := history.Record{Version: "4.4.6", Attempt: 1, Conditions: []history.StepCondition{
		{Type: "First", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, StartTime: at(0), CompleteTime: at(0)},
		{Type: "Second", Status: metav1.ConditionFalse, Reason: "NotYet", StartTime: at(0), LastTransitionTime: at(0)},
	}}
	events := process()
	save := func() { // as package lifecycle does
		record.NotifiedTime = new(events.NotifiedTime(subject, record))
		publishSteps(t, events, record)
	}
	save()
	clock.SetTime(noon.Add(5 * time.Minute))
	save() // the heartbeat
	if len(r.arrived) != 2 {
		t.Fatalf("published %q", r.messages())
	}

	restart := func() {
		clock.SetTime(clock.Now().Add(5 * time.Hour))
		if err := r.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(subject.Namespace)); err != nil {
			t.Fatal(err)
		}
		r.arrived = nil
		events = process()
	}
	restart()
	publishSteps(t, events, record)
	if len(r.arrived) != 0 {
		t.Errorf("repeated %q", r.messages())
	}

	t.Log("what a process has saved and not published is published by the next one, hours later")
	now := metav1.NewTime(clock.Now().Truncate(time.Second))
	record.Conditions[1] = history.StepCondition{Type: "Second", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, Message: "x", StartTime: at(0), CompleteTime: &now}
	record.Conditions = append(record.Conditions, history.StepCondition{Type: "Third", Status: metav1.ConditionFalse, Reason: engine.ReasonStarted, StartTime: &now, LastTransitionTime: &now})
	record.NotifiedTime = new(events.NotifiedTime(subject, record)) // and then the process crashes
	restart()
	publishSteps(t, events, record)
	if diff := cmp.Diff([]string{"Normal StepDone Second: x (upgrade to 4.4.6)"}, r.messages()); diff != "" {
		t.Errorf("published after the crash (-want +got):\n%s", diff)
	}

	t.Log("the first answer of a step counts from its start")
	clock.SetTime(clock.Now().Add(time.Minute))
	record.NotifiedTime = new(events.NotifiedTime(subject, record))
	record.Conditions[2].Reason, record.Conditions[2].Message = "NotYet", "y"
	restart()
	publishSteps(t, events, record)
	if got := r.messages(); !slices.Contains(got, "Normal StepWaiting Third: y (upgrade to 4.4.6)") {
		t.Errorf("published %q", got)
	}
}

// TestEventsOfDamagedTexts publishes a status with texts that another client wrote.
func TestEventsOfDamagedTexts(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	at := metav1.NewTime(noon)
	publishSteps(t, r.events(), history.Record{Version: "4.4.6\x1b[31m", Attempt: 1, Conditions: []history.StepCondition{
		{Type: "A\x00\nB", Status: metav1.ConditionTrue, Reason: "R\x1b", Message: "\x1b[31mred\n" + strings.Repeat("x", 1<<20), StartTime: &at, CompleteTime: &at},
	}})
	event := r.arrived[0]
	if len(event.Message) > 1024 || strings.ContainsAny(event.Message+event.Reason, "\x1b\x00\n") {
		t.Errorf("reason %q, message %q", event.Reason, event.Message[:100])
	}
}
