// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Component is the default source of Events.
const Component = "managed-upgrade-operator"

// Limits of the API for the fields of an Event, in bytes, with room for an ellipsis.
const (
	maxMessage = 1000
	maxReason  = 120
)

// Events writes Kubernetes Events. The name of an Event is derived from its ID, so publishing it
// again after a crash finds it.
type Events struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Component is the source of the Events. Defaults to the constant Component.
	Component string
	// Omit reports whether a notification about a step is omitted. Optional.
	Omit func(StepNotification) bool
	// OnFailure is called for each Event that could not be written. Optional.
	OnFailure func()

	mu        sync.Mutex
	published map[string]map[string]bool // IDs by the UID of the object, so a pass without changes writes nothing
}

// Publish writes an Event about the object with the current time. It succeeds if the Event exists.
func (e *Events) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	return e.write(ctx, ref, n, n.ID, e.Clock.Now())
}

// PublishSteps writes an Event for each step of the record that has returned a result, in order,
// unless it was published before. The Events have the times of the record. After an error, the next
// call publishes the rest.
func (e *Events) PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error {
	for _, n := range e.fromRecord(ref, record) {
		if isNotified(record, n) || e.isPublished(ref, n.ID) {
			continue
		}
		at := n.precise()
		if n.Time.IsZero() {
			at = e.Clock.Now()
		}
		event := n.Notification
		event.Reason = "Step" + string(n.Class)
		event.Message = n.Step + ": " + text.Truncate(n.Message, maxMessage)
		if record.Version != "" {
			event.Message += " (upgrade to " + record.Version + ")"
		}
		if err := e.write(ctx, ref, event, n.sortKey()+"."+n.ID, at); err != nil {
			return err
		}
	}
	return nil
}

// fromRecord is like FromRecord, but leaves out omitted notifications.
func (e *Events) fromRecord(ref corev1.ObjectReference, record history.Record) []StepNotification {
	all := FromRecord(ref, record)
	if e.Omit != nil {
		all = slices.DeleteFunc(all, e.Omit)
	}
	return all
}

// NotifiedTime returns the time up to which all Events about the steps of the record and about the
// other notifications were written. It is the notifiedTime for the next save of the record, so the
// next process does not repeat Events that the API server has removed by then.
func (e *Events) NotifiedTime(ref corev1.ObjectReference, record history.Record, others ...engine.Notification) metav1.Time {
	at := e.Clock.Now().Truncate(time.Second)
	for _, n := range e.fromRecord(ref, record) {
		if !isNotified(record, n) && !e.isPublished(ref, n.ID) && n.Time.Before(at) {
			at = n.Time
		}
	}
	for _, n := range others {
		if !isBefore(n.Time, record) && !e.isPublished(ref, n.ID) && n.Time.Before(at) {
			at = n.Time
		}
	}
	for _, c := range record.Conditions { // the first result of a step has the step's start time
		if started := timeOf(c, true); isStarting(c) && started.Before(at) {
			at = started
		}
	}
	return metav1.NewTime(at)
}

// isNotified reports whether an earlier process wrote the Event about a step.
func isNotified(record history.Record, n StepNotification) bool {
	return isBefore(n.Time, record)
}

// isBefore reports whether, according to the record, the Events about that time were written.
func isBefore(at time.Time, record history.Record) bool {
	return record.NotifiedTime != nil && !at.IsZero() && at.Before(record.NotifiedTime.Time)
}

// Reset drops the published IDs about an object.
func (e *Events) Reset(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.published, uid)
}

// write creates the Event unless it was published. The key makes its name unique for the object.
func (e *Events) write(ctx context.Context, ref corev1.ObjectReference, n engine.Notification, key string, at time.Time) error {
	if e.isPublished(ref, n.ID) {
		return nil
	}
	if err := e.create(ctx, ref, n, key, at); err != nil {
		return err
	}
	e.markPublished(ref, n.ID)
	return nil
}

// Create writes an Event about the object with the current time. Unlike Publish, it does not store
// the ID. It is meant for objects that live as long as the cluster.
func (e *Events) Create(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	return e.create(ctx, ref, n, n.ID, e.Clock.Now())
}

func (e *Events) create(ctx context.Context, ref corev1.ObjectReference, n engine.Notification, key string, at time.Time) error {
	component := cmp.Or(e.Component, Component)
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: eventName(ref.Name, key)},
		InvolvedObject: ref,
		Type:           n.Type, Reason: text.Sanitize(n.Reason, maxReason), Message: text.Sanitize(n.Message, maxMessage),
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
		EventTime: metav1.NewMicroTime(at), Action: "Upgrade",
		Source:              corev1.EventSource{Component: component},
		ReportingController: component, ReportingInstance: component,
	}
	if err := e.Client.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		if e.OnFailure != nil {
			e.OnFailure()
		}
		return fmt.Errorf("writing the Event %s about %s %s: %w", n.Reason, ref.Kind, ref.Name, err)
	}
	return nil
}

func (e *Events) isPublished(ref corev1.ObjectReference, id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.published[string(ref.UID)][id]
}

func (e *Events) markPublished(ref corev1.ObjectReference, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	uid := string(ref.UID)
	if e.published == nil {
		e.published = map[string]map[string]bool{}
	}
	if e.published[uid] == nil {
		e.published[uid] = map[string]bool{}
	}
	e.published[uid][id] = true
}

// eventName returns a valid name, unique for the object name and the key.
func eventName(objectName, key string) string {
	const maxLength = 253
	head := strings.TrimRight(objectName[:min(len(objectName), maxLength-len(key)-1)], "-.") // cutting may leave an invalid end
	return head + "." + key
}
