// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Component is the source of the Events.
const Component = "managed-upgrade-operator"

// maxMessage is what the API takes for the message of an Event, in bytes, with room for an ellipsis.
const maxMessage = 1000

// Events writes Kubernetes Events. The name of an Event is made of what it
// tells, so that telling it again, after a crash, finds it there already.
type Events struct {
	Client client.Client
	Clock  clock.PassiveClock
	// OnFailure is called after each Event that could not be written; nil means no observer.
	OnFailure func()

	mu        sync.Mutex
	published map[string]map[string]bool // subject's uid → ids, so that a steady pass writes nothing
}

// Publish writes one Event about the subject. That it exists already is success.
func (e *Events) Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error {
	if e.isPublished(ref, n.ID) {
		return nil
	}
	now := metav1.NewTime(e.Clock.Now())
	namespace := ref.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: eventName(ref.Name, n.ID)},
		InvolvedObject: ref,
		Type:           n.Type, Reason: n.Reason, Message: text.Truncate(n.Message, maxMessage),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source:              corev1.EventSource{Component: Component},
		ReportingController: Component,
	}
	if err := e.Client.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		if e.OnFailure != nil {
			e.OnFailure()
		}
		return fmt.Errorf("writing the event %s about %s %s: %w", n.Reason, ref.Kind, ref.Name, err)
	}
	e.markPublished(ref, n.ID)
	return nil
}

// PublishSteps writes an Event for what the record says of each step, in order, unless
// that was told before. After an error the rest is told the next time.
func (e *Events) PublishSteps(ctx context.Context, ref corev1.ObjectReference, record history.Record) error {
	for _, c := range record.Conditions {
		reason, eventType := stepEvent(c)
		if reason == "" {
			continue
		}
		// The version is part of it: the next one's attempts are counted from 1 again.
		n := engine.Notification{
			ID:      engine.NotificationID(string(ref.UID), engine.AttemptKey(record), record.Version+" "+c.Type, reason),
			Version: record.Version, Attempt: record.Attempt, Type: eventType, Reason: reason,
			Message: fmt.Sprintf("%s: %s (upgrade to %s)", c.Type, c.Message, record.Version),
		}
		if err := e.Publish(ctx, ref, n); err != nil {
			return err
		}
	}
	return nil
}

// Reset drops what was told about a subject that is over or gone.
func (e *Events) Reset(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.published, uid)
}

// stepEvent is the reason of the Event about a step. A step that has only begun
// is not worth one.
func stepEvent(c history.StepCondition) (reason, eventType string) {
	finished := c.CompleteTime != nil
	switch {
	case finished && c.Status == metav1.ConditionFalse:
		return "StepFailed", corev1.EventTypeWarning
	case finished && c.Reason == engine.ReasonDone:
		return "StepDone", corev1.EventTypeNormal
	case finished:
		return "StepSkipped", corev1.EventTypeNormal
	case c.Status == metav1.ConditionUnknown:
		return "StepUnknown", corev1.EventTypeWarning
	case c.Reason == engine.ReasonStarted:
		return "", ""
	}
	return "StepWaiting", corev1.EventTypeNormal
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

// eventName is unique to the subject's name and the id, and a valid name.
func eventName(objectName, id string) string {
	const most = 253
	head := strings.TrimRight(objectName[:min(len(objectName), most-len(id)-1)], "-.") // the cut may leave no name
	return head + "." + id
}
