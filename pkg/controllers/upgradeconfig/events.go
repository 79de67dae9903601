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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

// publishTimeout is for how long the end of an upgrade is tried to be told before the
// upgrade is let go without.
const publishTimeout = 5 * time.Minute

// publishDeadline is for how long an upgrade waits while something is told about it.
const publishDeadline = 10 * time.Second

// publishSteps tells what the record says of the steps. What cannot be told now is
// told with the next pass: nothing waits for it.
func (s *scope) publishSteps(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	if err := s.Notifier.PublishSteps(ctx, s.objectReference(), s.record); err != nil {
		s.log.Error(err, "an event could not be written, it is tried again")
	}
}

// publishResult tells how the attempt ended: by its steps, or, if it never began, by its summary.
func (s *scope) publishResult(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	succeeded := meta.FindStatusCondition(s.cfg.Status.Conditions, v1alpha1.ConditionSucceeded)
	var err error
	switch {
	case s.record.StartTime != nil:
		err = s.Notifier.PublishSteps(ctx, s.objectReference(), s.record)
	case succeeded == nil || s.cfg.Status.History[0].Version != s.record.Version: // the summary is not about this attempt
	case succeeded.Status == metav1.ConditionTrue:
		err = s.publish(ctx, corev1.EventTypeNormal, succeeded.Reason, succeeded.Message)
	default:
		err = s.publish(ctx, corev1.EventTypeWarning, succeeded.Reason, succeeded.Message)
	}
	return errors.Join(err, s.Notifier.PendingError(string(s.cfg.UID)))
}

// publishPrecheck tells what the early check is shown to have found: once for each set
// of steps that are in the way, whatever they say.
func (s *scope) publishPrecheck(ctx context.Context) {
	switch c := meta.FindStatusCondition(s.cfg.Status.Conditions, v1alpha1.ConditionPreCheckPassed); {
	case c == nil || c.ObservedGeneration != s.cfg.Generation: // it is about another spec
	case c.Status == metav1.ConditionTrue:
		s.publishOnce(ctx, corev1.EventTypeNormal, "EarlyCheckPassed", c.Reason, c.Message)
	default:
		s.publishOnce(ctx, corev1.EventTypeWarning, "EarlyCheckFailed", c.Reason, c.Message)
	}
}

// publishConfigError tells that the configuration is not the one that is written.
func (s *scope) publishConfigError(ctx context.Context) {
	if c := meta.FindStatusCondition(s.cfg.Status.Conditions, v1alpha1.ConditionDegraded); c != nil {
		s.publishOnce(ctx, corev1.EventTypeWarning, c.Reason, c.Message, c.Message)
	}
}

// publishOnce tells something once; what makes it another thing is told again. If
// it cannot be told now it is with the next look.
func (s *scope) publishOnce(ctx context.Context, eventType, reason, dedupKey, message string) {
	ctx, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	if err := s.notify(ctx, eventType, reason, s.record.Version+" "+dedupKey, message); err != nil {
		s.log.Error(err, "an event could not be written, it is tried again")
	}
}

// publish writes an Event about the upgrade as a whole.
func (s *scope) publish(ctx context.Context, eventType, reason, message string) error {
	return s.notify(ctx, eventType, reason, s.record.Version, message)
}

// notify tells something of the attempt; about says what else makes it another thing than its reason.
func (s *scope) notify(ctx context.Context, eventType, reason, dedupKey, message string) error {
	return s.Notifier.Publish(ctx, s.objectReference(), engine.Notification{
		ID:      engine.NotificationID(string(s.cfg.UID), engine.AttemptKey(s.record), dedupKey, reason),
		Version: s.record.Version, Attempt: s.record.Attempt,
		Type: eventType, Reason: reason, Message: message,
	})
}

// onTransition is told by the engine of each transition that was saved.
func (s *scope) onTransition(t engine.Transition) {
	s.Metrics.ObserveStep(groupKind, s.typeLabel(), t.To)
	s.log.Info("step "+t.To.Type, "status", t.To.Status, "reason", t.To.Reason, "message", t.To.Message,
		"over", t.To.CompleteTime != nil, "version", s.record.Version)
}

// recordMetrics shows in the metrics what the look has found, and how it ended.
func (s *scope) recordMetrics(err error) {
	s.Metrics.SetUpgrade(metrics.Snapshot{
		Kind: groupKind, Namespace: s.cfg.Namespace, Name: s.cfg.Name,
		Record: s.record, Conditions: s.cfg.Status.Conditions,
		Slow: meta.IsStatusConditionTrue(s.cfg.Status.Conditions, v1alpha1.ConditionStalled),
		At:   s.Clock.Now(), Err: err,
	})
}

func (s *scope) objectReference() corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: upgradeConfigKind,
		Namespace: s.cfg.Namespace, Name: s.cfg.Name, UID: s.cfg.UID,
	}
}

// typeLabel is the type as a metric's label, of which there are only so many.
func (s *scope) typeLabel() string {
	if s.upgrader == nil {
		return "unknown"
	}
	return s.cfg.Spec.Type
}
