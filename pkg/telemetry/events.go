// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

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
	// Metrics count what could not be written; nil: nobody does.
	Metrics *Metrics

	mu   sync.Mutex
	told map[string]map[string]bool // subject's uid → ids, so that a steady pass writes nothing
}

// Notify writes one Event about the subject. That it exists already is success.
func (e *Events) Notify(ctx context.Context, subject corev1.ObjectReference, n engine.Notice) error {
	if e.isTold(subject, n.ID) {
		return nil
	}
	now := metav1.NewTime(e.Clock.Now())
	namespace := subject.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: eventName(subject.Name, n.ID)},
		InvolvedObject: subject,
		Type:           n.Type, Reason: n.Reason, Message: engine.Clip(n.Message, maxMessage),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source:              corev1.EventSource{Component: Component},
		ReportingController: Component,
	}
	if err := e.Client.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		e.Metrics.Untold()
		return fmt.Errorf("writing the event %s about %s %s: %w", n.Reason, subject.Kind, subject.Name, err)
	}
	e.markTold(subject, n.ID)
	return nil
}

// Tell writes an Event for what the record says of each step, in order, unless
// that was told before. After an error the rest is told the next time.
func (e *Events) Tell(ctx context.Context, subject corev1.ObjectReference, record history.History) error {
	for _, c := range record.Conditions {
		what, eventType := describe(c)
		if what == "" {
			continue
		}
		// The version is part of it: the next one's attempts are counted from 1 again.
		n := engine.Notice{
			ID:      engine.ID(string(subject.UID), record.Attempt, record.Version+" "+c.Type, what),
			Version: record.Version, Attempt: record.Attempt, Type: eventType, Reason: what,
			Message: fmt.Sprintf("%s: %s (upgrade to %s)", c.Type, c.Message, record.Version),
		}
		if err := e.Notify(ctx, subject, n); err != nil {
			return err
		}
	}
	return nil
}

// Forget drops what was told about a subject that is over or gone.
func (e *Events) Forget(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.told, uid)
}

// describe is the reason of the Event about a step. A step that has only begun
// is not worth one.
func describe(c history.StepCondition) (reason, eventType string) {
	over := c.CompleteTime != nil
	switch {
	case over && c.Status == metav1.ConditionFalse:
		return "StepFailed", corev1.EventTypeWarning
	case over && c.Reason == engine.ReasonDone:
		return "StepDone", corev1.EventTypeNormal
	case over:
		return "StepSkipped", corev1.EventTypeNormal
	case c.Status == metav1.ConditionUnknown:
		return "StepUnknown", corev1.EventTypeWarning
	case c.Reason == engine.ReasonStarted:
		return "", ""
	}
	return "StepWaiting", corev1.EventTypeNormal
}

func (e *Events) isTold(subject corev1.ObjectReference, id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told[string(subject.UID)][id]
}

func (e *Events) markTold(subject corev1.ObjectReference, id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	uid := string(subject.UID)
	if e.told == nil {
		e.told = map[string]map[string]bool{}
	}
	if e.told[uid] == nil {
		e.told[uid] = map[string]bool{}
	}
	e.told[uid][id] = true
}

// eventName is unique to the subject's name and the id, and a valid name.
func eventName(subject, id string) string {
	const most = 253
	head := strings.TrimRight(subject[:min(len(subject), most-len(id)-1)], "-.") // the cut may leave no name
	return head + "." + id
}
