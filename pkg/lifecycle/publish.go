// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
)

// publishTimeout bounds how long the lock is kept while publishing the result of an attempt fails.
const publishTimeout = 5 * time.Minute

// republishTimeout bounds how long publishing is retried after that.
const republishTimeout = 24 * time.Hour

// publishDeadline bounds how long an attempt waits for one publication.
const publishDeadline = 10 * time.Second

// publishSteps publishes the steps of the record. A later pass publishes what cannot be published now; nothing
// waits for it.
func (s *scope[T]) publishSteps(ctx context.Context) {
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, publishDeadline)
	defer cancel()
	if err := s.Notifier.PublishSteps(ctx, s.objectReference(), s.record); err != nil {
		s.log.Error(err, "publishing the steps, will be retried")
	}
}

// publishResult publishes the end of the attempt: its steps or, if none started, its outcome.
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

// isResultPending reports whether a record shows that the result of a finished attempt is undelivered: its
// notifiedTime is before its end. After republishTimeout, it no longer counts.
func isResultPending(r history.Record, now time.Time) bool {
	return r.NotifiedTime != nil && r.NotifiedTime.Before(r.CompleteTime) && now.Before(r.CompleteTime.Add(republishTimeout))
}

// unreleased returns the record of the last attempt while the object has its finalizer, and nil afterwards. A
// due attempt does not wait for a receiver that is down, once the record shows that the result is undelivered.
func (s *scope[T]) unreleased() *history.Record {
	records := *s.Kind.Status(s.obj).History
	if s.claimed || s.record.InProgress() || len(records) == 0 || !records[0].Finished() || records[0].StartTime == nil || !s.hasFinalizer() {
		return nil
	}
	if isDue := !s.deleted() && !s.now.Before(s.upgradeAt.Add(-s.plan.PreCheckLead)); isDue && isResultPending(records[0], s.now) {
		return nil
	}
	return records[0].DeepCopy()
}

// publishFormer publishes the undelivered results of earlier attempts of the object. It returns when to try
// again, or zero if all are delivered.
func (s *scope[T]) publishFormer(ctx context.Context) (time.Time, error) {
	for _, record := range s.Kind.Status(s.obj).records() {
		if isAttempt(record, s.record) || !isResultPending(record, s.now) {
			continue
		}
		former := *s
		former.record = *record.DeepCopy()
		if retry := s.retryAt(s.memory.republished); !retry.IsZero() {
			return retry, nil
		}
		if err := former.publishResult(ctx); err != nil {
			s.log.Error(err, "publishing the result of an earlier attempt, will be retried")
			s.memory.republished = s.now
			return s.now.Add(maxRequeue), nil
		}
		if err := former.recordDelivery(ctx, true); err != nil {
			return time.Time{}, err
		}
		s.obj = former.obj
	}
	return time.Time{}, nil
}

// retryAt returns when to retry what failed at a time. It returns zero if the retry is due, or if that time is in the
// future because the clock was ahead.
func (s *scope[T]) retryAt(failed time.Time) time.Time {
	if retry := failed.Add(maxRequeue); !failed.After(s.now) && s.now.Before(retry) {
		return retry
	}
	return time.Time{}
}

// endedWithin reports whether the attempt ended less than d ago.
func (s *scope[T]) endedWithin(d time.Duration) bool {
	return s.record.CompleteTime != nil && s.now.Before(s.record.CompleteTime.Add(d))
}

// recordDelivery records whether the result of a finished attempt is delivered.
func (s *scope[T]) recordDelivery(ctx context.Context, delivered bool) error {
	after := s.copy()
	record := s.Kind.Status(after).find(s.record)
	if record == nil {
		return nil
	}
	record.NotifiedTime = s.record.CompleteTime.DeepCopy()
	if !delivered {
		record.NotifiedTime = undelivered(s.record)
	}
	if err := s.store.patchStatus(ctx, s.obj, after); err != nil {
		return fmt.Errorf("saving whether the result is delivered: %w", err)
	}
	s.obj, s.record = after, *record.DeepCopy()
	return nil
}

// undelivered returns the notifiedTime of a finished record whose result is not delivered.
func undelivered(record history.Record) *metav1.Time {
	return toMetaTime(record.CompleteTime.Add(-time.Second))
}

// publishStatus publishes what the stored status shows apart from the steps.
func (s *scope[T]) publishStatus(ctx context.Context) {
	conditions := *s.Kind.Status(s.obj).Conditions
	if c := meta.FindStatusCondition(conditions, history.ConditionDegraded); c != nil && !s.record.Finished() {
		s.publishOnce(ctx, corev1.EventTypeWarning, c.Reason, c.Message, c.Message)
	}
	for _, n := range s.slowness(conditions, s.record) {
		s.publishState(ctx, n)
	}
	if s.hold != "" && !s.isPastCommit() && !s.record.Finished() && !s.deleted() { // also before the window opens
		s.publishOnce(ctx, corev1.EventTypeWarning, "UpgradeHeld", s.hold, s.hold)
	}
}

// slowness returns notifications that the current step is slow, and that earlier ones were.
func (s *scope[T]) slowness(conditions []metav1.Condition, record history.Record) []engine.Notification {
	var all []engine.Notification
	note := func(reason, step, message string, at time.Time) {
		n := s.notification(corev1.EventTypeWarning, reason, record.Version+" "+step, message)
		n.Time = at
		all = append(all, n)
	}
	if c := meta.FindStatusCondition(conditions, history.ConditionSlow); c != nil && c.Status == metav1.ConditionTrue {
		note("UpgradeStalled", c.Reason, c.Message, c.LastTransitionTime.Time)
	}
	if record.Finished() {
		return all
	}
	for _, c := range s.recoveredSteps(record) {
		note("UpgradeRecovered", c.Type, c.Type+" was slow and is done", c.CompleteTime.Time)
	}
	return all
}

// publishRestore publishes that an object is older than its last known version: a window may have passed
// unnoticed.
func (r *Reconciler[T]) publishRestore(ctx context.Context, obj T, version string) {
	s := r.newScope(obj, ctrl.LoggerFrom(ctx))
	s.publishOnce(ctx, corev1.EventTypeWarning, "StateRestored", version,
		"the cache has not shown the last write for a minute; if etcd was restored from a backup, what happened since then is not recorded, and the upgrade continues from the restored state")
}

// recoveredSteps returns the steps of the record that were slow and are done.
func (s *scope[T]) recoveredSteps(record history.Record) []history.StepCondition {
	var steps []history.StepCondition
	for i := range s.plan.Book.Steps {
		step := &s.plan.Book.Steps[i]
		for _, c := range record.Conditions {
			if c.Type == step.Name && step.SlowAfter > 0 && c.Status == metav1.ConditionTrue &&
				c.StartTime != nil && c.CompleteTime != nil && c.CompleteTime.Sub(lastProgress(c)) > step.SlowAfter {
				steps = append(steps, c)
			}
		}
	}
	return steps
}

// lastProgress returns when a step last made progress.
func lastProgress(c history.StepCondition) time.Time {
	if c.ProgressTime != nil {
		return c.ProgressTime.Time
	}
	return c.StartTime.Time
}

// publishPrecheck publishes the pre-check of the status once for each set of blocking steps.
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

// publishState publishes a notification about the status unless an earlier process did. If it fails, a later
// pass publishes it.
func (s *scope[T]) publishState(ctx context.Context, n engine.Notification) {
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, publishDeadline)
	defer cancel()
	if err := s.Notifier.PublishOnce(ctx, s.objectReference(), s.record, n); err != nil {
		s.log.Error(err, "publishing a notification, will be retried", "reason", n.Reason)
	}
}

// publish publishes a notification about the attempt as a whole.
func (s *scope[T]) publish(ctx context.Context, eventType, reason, message string) error {
	return s.notify(ctx, eventType, reason, s.record.Version, message)
}

func (s *scope[T]) notify(ctx context.Context, eventType, reason, dedupKey, message string) error {
	return s.Notifier.Publish(ctx, s.objectReference(), s.notification(eventType, reason, dedupKey, message))
}

func (s *scope[T]) notification(eventType, reason, dedupKey, message string) engine.Notification {
	return engine.Notification{
		ID:      engine.NotificationID(string(s.obj.GetUID()), engine.AttemptKey(s.record), dedupKey, reason),
		Version: s.record.Version, Attempt: s.record.Attempt,
		Type: eventType, Reason: reason, Message: message,
	}
}

// onTransition records a transition that the engine has saved.
func (s *scope[T]) onTransition(t engine.Transition) {
	s.Metrics.ObserveStep(s.Kind.GroupVersionKind().GroupKind(), s.plan.Type, t.To)
	s.log.Info("step "+t.To.Type, "status", t.To.Status, "reason", t.To.Reason, "message", t.To.Message,
		"finished", t.To.CompleteTime != nil, "version", s.record.Version)
}

// recordMetrics updates the metrics with the result of the pass.
func (s *scope[T]) recordMetrics(err error) {
	conditions := *s.Kind.Status(s.obj).Conditions
	snapshot := metrics.Snapshot{
		Kind: s.Kind.GroupVersionKind().GroupKind(), Namespace: s.obj.GetNamespace(), Name: s.obj.GetName(),
		Record: s.record, Conditions: conditions,
		Slow: meta.IsStatusConditionTrue(conditions, history.ConditionSlow),
		Held: s.holdReason() != "" && !s.isPastCommit() && !s.record.Finished(),
		At:   s.Clock.Now(), Err: err,
	}
	if s.plan.lockStep() != "" && !s.record.Finished() {
		snapshot.StartAfter, snapshot.StartBefore = s.upgradeAt, s.windowEnd()
	}
	s.Metrics.SetUpgrade(snapshot)
}

func (s *scope[T]) objectReference() corev1.ObjectReference {
	return objects.Reference(s.obj, s.Kind.GroupVersionKind())
}
