// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

// publishTimeout bounds how long publishing the result of an attempt is retried before the lock is
// released without it.
const publishTimeout = 5 * time.Minute

// republishTimeout bounds how long the result of an attempt is published again after that.
const republishTimeout = 24 * time.Hour

// publishDeadline bounds how long an attempt waits while something about it is published.
const publishDeadline = 10 * time.Second

// publishSteps publishes what the record contains of the steps. What cannot be published now is
// published by a later pass; nothing waits for it.
func (s *scope[T]) publishSteps(ctx context.Context) {
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, publishDeadline)
	defer cancel()
	if err := s.Notifier.PublishSteps(ctx, s.objectReference(), s.record); err != nil {
		s.log.Error(err, "publishing the steps, will be retried")
	}
}

// publishResult publishes how the attempt ended: by its steps or, if none started, by its outcome.
func (s *scope[T]) publishResult(ctx context.Context) error {
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, publishDeadline)
	defer cancel()
	var err error
	switch {
	case len(s.record.Conditions) > 0:
		err = s.Notifier.PublishSteps(ctx, s.objectReference(), s.record)
	case s.record.Reason == "":
	case s.record.Phase == history.PhaseUpgraded:
		err = s.publish(ctx, corev1.EventTypeNormal, s.record.Reason, s.record.Message)
	default:
		err = s.publish(ctx, corev1.EventTypeWarning, s.record.Reason, s.record.Message)
	}
	return errors.Join(err, s.Notifier.PendingError(string(s.obj.GetUID())))
}

// resultPending reports whether the record holds that the result of a finished attempt is not
// delivered: its notifiedTime is before its end. That time is bounded by republishTimeout.
func (s *scope[T]) resultPending() bool {
	return s.record.NotifiedTime != nil && s.record.NotifiedTime.Before(s.record.CompleteTime) && s.endedWithin(republishTimeout)
}

// endedWithin reports whether the attempt ended less than d ago.
func (s *scope[T]) endedWithin(d time.Duration) bool {
	return s.record.CompleteTime != nil && s.now.Before(s.record.CompleteTime.Add(d))
}

// recordDelivery records whether the result of a finished attempt is delivered.
func (s *scope[T]) recordDelivery(ctx context.Context, delivered bool) error {
	after := s.copy()
	records := *s.Kind.Status(after).History
	i := slices.IndexFunc(records, func(r history.Record) bool { return s.Kind.HistoryKey().same(r, s.record) })
	if i < 0 {
		return nil
	}
	records[i].NotifiedTime = s.record.CompleteTime.DeepCopy()
	if !delivered {
		records[i].NotifiedTime = undelivered(s.record)
	}
	if err := s.store.patchStatus(ctx, s.obj, after); err != nil {
		return fmt.Errorf("saving whether the result is delivered: %w", err)
	}
	s.obj, s.record = after, *records[i].DeepCopy()
	return nil
}

// undelivered returns the notifiedTime of a finished record whose result is not delivered.
func undelivered(record history.Record) *metav1.Time {
	return toMetaTime(record.CompleteTime.Add(-time.Second))
}

// publishStatus publishes what the stored status shows beside the steps.
func (s *scope[T]) publishStatus(ctx context.Context) {
	conditions := *s.Kind.Status(s.obj).Conditions
	if c := meta.FindStatusCondition(conditions, history.ConditionDegraded); c != nil && !s.record.Finished() {
		s.publishOnce(ctx, corev1.EventTypeWarning, c.Reason, c.Message, c.Message)
	}
	if c := meta.FindStatusCondition(conditions, history.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		s.publishOnce(ctx, corev1.EventTypeWarning, "UpgradeStalled", c.Reason, c.Message)
	}
	if s.hold != "" && !s.isPastCommit() && !s.record.Finished() && !s.deleted() { // also before the window opens
		s.publishOnce(ctx, corev1.EventTypeWarning, "UpgradeHeld", s.hold, s.hold)
	}
	if s.record.Finished() {
		return
	}
	for _, step := range s.recoveredSteps() {
		s.publishOnce(ctx, corev1.EventTypeWarning, "UpgradeRecovered", step, step+" was slow and is done")
	}
}

// publishRestore publishes that an object is older than it was: a window may have passed meanwhile.
func (r *Reconciler[T]) publishRestore(ctx context.Context, obj T, version string) {
	s := r.newScope(obj, ctrl.LoggerFrom(ctx))
	s.publishOnce(ctx, corev1.EventTypeWarning, "StateRestored", version,
		"the cache has not shown the last write for a minute; if etcd was restored from a backup, what happened since then is not recorded, and the upgrade continues from the restored state")
}

// recoveredSteps returns the steps that were stalled and are done, according to the record.
func (s *scope[T]) recoveredSteps() []string {
	var names []string
	for i := range s.plan.Book.Steps {
		step := &s.plan.Book.Steps[i]
		for _, c := range s.record.Conditions {
			if c.Type == step.Name && step.SlowAfter > 0 && c.Status == metav1.ConditionTrue &&
				c.StartTime != nil && c.CompleteTime != nil && c.CompleteTime.Sub(c.StartTime.Time) > step.SlowAfter {
				names = append(names, c.Type)
			}
		}
	}
	return names
}

// publishPrecheck publishes the result of the pre-check that the status shows: once for each set of
// steps that would block.
func (s *scope[T]) publishPrecheck(ctx context.Context) {
	switch c := meta.FindStatusCondition(*s.Kind.Status(s.obj).Conditions, history.ConditionPreCheckPassed); {
	case c == nil || c.ObservedGeneration != s.obj.GetGeneration(): // it is about another spec
	case c.Status == metav1.ConditionTrue:
		s.publishOnce(ctx, corev1.EventTypeNormal, "PreCheckPassed", c.Reason, c.Message)
	default:
		s.publishOnce(ctx, corev1.EventTypeWarning, "PreCheckFailed", c.Reason, c.Message)
	}
}

// publishOnce publishes one notification per reason and key. If it fails, a later pass publishes it.
func (s *scope[T]) publishOnce(ctx context.Context, eventType, reason, dedupKey, message string) {
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, publishDeadline)
	defer cancel()
	if err := s.notify(ctx, eventType, reason, s.record.Version+" "+dedupKey, message); err != nil {
		s.log.Error(err, "publishing a notification, will be retried", "reason", reason)
	}
}

// publish publishes a notification about the attempt as a whole.
func (s *scope[T]) publish(ctx context.Context, eventType, reason, message string) error {
	return s.notify(ctx, eventType, reason, s.record.Version, message)
}

func (s *scope[T]) notify(ctx context.Context, eventType, reason, dedupKey, message string) error {
	return s.Notifier.Publish(ctx, s.objectReference(), engine.Notification{
		ID:      engine.NotificationID(string(s.obj.GetUID()), engine.AttemptKey(s.record), dedupKey, reason),
		Version: s.record.Version, Attempt: s.record.Attempt,
		Type: eventType, Reason: reason, Message: message,
	})
}

// onTransition records a transition that the engine has saved.
func (s *scope[T]) onTransition(t engine.Transition) {
	s.Metrics.ObserveStep(s.Kind.GroupVersionKind().GroupKind(), s.plan.Type, t.To)
	s.log.Info("step "+t.To.Type, "status", t.To.Status, "reason", t.To.Reason, "message", t.To.Message,
		"finished", t.To.CompleteTime != nil, "version", s.record.Version)
}

// recordMetrics shows in the metrics what the pass has found and how it ended.
func (s *scope[T]) recordMetrics(err error) {
	conditions := *s.Kind.Status(s.obj).Conditions
	snapshot := metrics.Snapshot{
		Kind: s.Kind.GroupVersionKind().GroupKind(), Namespace: s.obj.GetNamespace(), Name: s.obj.GetName(),
		Record: s.record, Conditions: conditions,
		Slow: meta.IsStatusConditionTrue(conditions, history.ConditionStalled),
		Held: s.holdReason() != "" && !s.isPastCommit() && !s.record.Finished(),
		At:   s.Clock.Now(), Err: err,
	}
	if s.plan.LockStep != "" && !s.record.Finished() {
		snapshot.StartAfter, snapshot.StartBefore = s.upgradeAt, s.windowEnd()
	}
	s.Metrics.SetUpgrade(snapshot)
}

func (s *scope[T]) objectReference() corev1.ObjectReference {
	version, kind := s.Kind.GroupVersionKind().ToAPIVersionAndKind()
	return corev1.ObjectReference{
		APIVersion: version, Kind: kind, Namespace: s.obj.GetNamespace(), Name: s.obj.GetName(), UID: s.obj.GetUID(),
	}
}
