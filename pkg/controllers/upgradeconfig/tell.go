// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

// tellFor is for how long the end of an upgrade is tried to be told before the
// upgrade is let go without.
const tellFor = 5 * time.Minute

// tellTimeout is for how long an upgrade waits while something is told about it.
const tellTimeout = 10 * time.Second

// tellSteps tells what the record says of the steps. What cannot be told now is
// told with the next pass: nothing waits for it.
func (l *look) tellSteps(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := l.Telling.Tell(ctx, l.subject(), l.record); err != nil {
		l.log.Error(err, "an event could not be written, it is tried again")
	}
}

// tellEnd tells how the attempt ended: by its steps, or, if it never began, by its summary.
func (l *look) tellEnd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	end := meta.FindStatusCondition(l.cfg.Status.Conditions, v1alpha1.ConditionSucceeded)
	var err error
	switch {
	case l.record.StartTime != nil:
		err = l.Telling.Tell(ctx, l.subject(), l.record)
	case end == nil || l.cfg.Status.History[0].Version != l.record.Version: // the summary is not about this attempt
	case end.Status == metav1.ConditionTrue:
		err = l.tell(ctx, corev1.EventTypeNormal, end.Reason, end.Message)
	default:
		err = l.tell(ctx, corev1.EventTypeWarning, end.Reason, end.Message)
	}
	return errors.Join(err, l.Telling.Delivered(string(l.cfg.UID)))
}

// tellEarly tells what the early check is shown to have found: once for each set
// of steps that are in the way, whatever they say.
func (l *look) tellEarly(ctx context.Context) {
	switch c := meta.FindStatusCondition(l.cfg.Status.Conditions, v1alpha1.ConditionEarlyCheckPassed); {
	case c == nil || c.ObservedGeneration != l.cfg.Generation: // it is about another spec
	case c.Status == metav1.ConditionTrue:
		l.tryToTell(ctx, corev1.EventTypeNormal, "EarlyCheckPassed", c.Reason, c.Message)
	default:
		l.tryToTell(ctx, corev1.EventTypeWarning, "EarlyCheckFailed", c.Reason, c.Message)
	}
}

// tellTrouble tells that the configuration is not the one that is written.
func (l *look) tellTrouble(ctx context.Context) {
	if c := meta.FindStatusCondition(l.cfg.Status.Conditions, v1alpha1.ConditionDegraded); c != nil {
		l.tryToTell(ctx, corev1.EventTypeWarning, c.Reason, c.Message, c.Message)
	}
}

// tryToTell tells something once; what makes it another thing is told again. If
// it cannot be told now it is with the next look.
func (l *look) tryToTell(ctx context.Context, eventType, reason, what, message string) {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	if err := l.notify(ctx, eventType, reason, l.record.Version+" "+what, message); err != nil {
		l.log.Error(err, "an event could not be written, it is tried again")
	}
}

// tell writes an Event about the upgrade as a whole.
func (l *look) tell(ctx context.Context, eventType, reason, message string) error {
	return l.notify(ctx, eventType, reason, l.record.Version, message)
}

// notify tells something of the attempt; about says what else makes it another thing than its reason.
func (l *look) notify(ctx context.Context, eventType, reason, about, message string) error {
	return l.Telling.Notify(ctx, l.subject(), engine.Notice{
		ID:      engine.ID(string(l.cfg.UID), l.record.Attempt, about, reason),
		Version: l.record.Version, Attempt: l.record.Attempt,
		Type: eventType, Reason: reason, Message: message,
	})
}

// observe is told by the engine of each transition that was saved.
func (l *look) observe(t engine.Transition) {
	l.Metrics.Ended(l.typeLabel(), t.To)
	l.log.Info("step "+t.To.Type, "status", t.To.Status, "reason", t.To.Reason, "message", t.To.Message,
		"over", t.To.CompleteTime != nil, "version", l.record.Version)
}

// measure shows in the metrics what the look has found, and how it ended.
func (l *look) measure(err error) {
	l.Metrics.Show(telemetry.Look{
		Namespace: l.cfg.Namespace, Name: l.cfg.Name,
		Record: l.record, Conditions: l.cfg.Status.Conditions,
		Slow: meta.IsStatusConditionTrue(l.cfg.Status.Conditions, v1alpha1.ConditionStalled),
		At:   l.Clock.Now(), Err: err,
	})
}

func (l *look) subject() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind,
		Namespace: l.cfg.Namespace, Name: l.cfg.Name, UID: l.cfg.UID,
	}
}

// typeLabel is the type as a metric's label, of which there are only so many.
func (l *look) typeLabel() string {
	if l.upgrader == nil {
		return "unknown"
	}
	return l.cfg.Spec.Type
}
