// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// reasonContinues is the reason of the Event about an upgrade that had commenced before its object was deleted.
const reasonContinues = "UpgradeContinues"

// abandonTimeout is how long removing what would be orphaned may take.
const abandonTimeout = time.Minute

// cancel ends the attempt of an object that is being deleted: before the commit by the cleanup and the
// final steps, once it has committed or succeeded at once. The timeout bounds how long the deletion waits
// for the cleanup. It does not bound the attempt at it: after the timeout, one more pass is made.
func (s *scope[T]) cancel(ctx context.Context) (time.Time, error) {
	if !s.record.InProgress() && !s.claimed {
		return time.Time{}, s.release(ctx)
	}
	last := s.cancelBy()
	expired := !s.now.Before(last)
	end, err := s.endingOf(ctx)
	if end == nil && (err == nil || expired) {
		next, passErr := s.startOrResume(ctx)
		switch {
		case !expired:
			return engine.Earliest(next, last), passErr
		case s.record.Finished(), isTransient(passErr):
			return next, passErr
		case passErr != nil:
			s.log.Error(passErr, "the last pass before the cleanup is abandoned")
		}
		if end, err = s.endingOf(ctx); end == nil {
			end = &ending{
				reason: "CancellationAbandoned", message: s.abandoned(),
				failed: s.failure() != nil && s.failure().Reason != engine.ReasonCancelled,
			}
			err = nil
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	if err := s.abandonInTime(ctx); err != nil {
		return time.Time{}, err
	}
	if end.reason == reasonContinues {
		s.continues = s.attempt(s.record)
		s.continues.CommenceTime = cmp.Or(s.continues.CommenceTime, s.now.UTC().Format(time.RFC3339))
	}
	if err := s.publishEnding(ctx, *end); err != nil {
		if until := s.obj.GetDeletionTimestamp().Add(publishTimeout); !expired && s.now.Before(until) {
			return s.publishUntil(until, err)
		}
		s.log.Error(err, "publishing the end of the upgrade")
	}
	return time.Time{}, s.release(ctx)
}

// cancelBy returns until when the deletion of the object waits for the cleanup.
func (s *scope[T]) cancelBy() time.Time {
	return s.obj.GetDeletionTimestamp().Add(s.plan.CancelTimeout)
}

// publishUntil returns when the end of an attempt is published again: after a backoff, which must not keep the lock beyond
// the time that publishing may take.
func (s *scope[T]) publishUntil(until time.Time, err error) (time.Time, error) {
	if s.now.Before(until.Add(-maxBackoff)) {
		return time.Time{}, err
	}
	s.log.Error(err, "publishing the result, will be retried")
	return until, nil
}

// endingOf returns how the deletion ends the attempt at once; nil if the attempt has to be cleaned up, or
// if it is unknown whether it has commenced.
func (s *scope[T]) endingOf(ctx context.Context) (*ending, error) {
	phase, err := engine.CurrentPhase(ctx, s.Clock, s.plan.Book, s.record)
	switch {
	case !s.plan.Known:
		return &ending{reason: "CancellationAbandoned", message: "the type is not known to this release of the operator, so nothing was cleaned up"}, nil
	case s.outcome() == engine.OutcomeUpgraded:
		return &ending{upgraded: true}, nil
	case phase == engine.PhaseCommitted && s.failure() != nil:
		return &ending{failed: true}, nil
	case phase == engine.PhaseCommitted:
		failed, err := s.plan.Book.FailedAfterCommit(ctx, s.Clock)
		if err == nil && failed.Failed() { // while no process ran
			return &ending{reason: "UpgradeFailed", message: s.describe() + " had commenced, and has failed: " + failed.Message()}, nil
		}
		return &ending{reason: reasonContinues, message: s.describe() + " had commenced; it continues without this " + s.Kind.GroupVersionKind().Kind}, nil
	}
	return nil, err
}

// isTransient reports whether an error says nothing about the next try.
func isTransient(err error) bool {
	return errors.Is(err, errStaleCache) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// ending is how a deletion ends an attempt that is not finished.
type ending struct {
	reason, message string // of a Warning Event; empty if there is none
	failed          bool   // whether the attempt had failed, so that its failure has to be published
	upgraded        bool   // whether it had succeeded, so that its success has to be published
}

// abandoned returns what a deletion did not wait for any longer.
func (s *scope[T]) abandoned() string {
	e := engine.Summarize(s.plan.Book, s.record, s.now, s.constraints())
	switch {
	case e.State == engine.Finishing && e.Current != nil:
		return fmt.Sprintf("the upgrade was cleaned up; %s did not end in time: %s", e.Current.Type, e.Current.Message)
	case e.Current != nil:
		return fmt.Sprintf("the cleanup did not end in time: %s: %s; check spec.desiredUpdate and spec.channel of the ClusterVersion", e.Current.Type, e.Current.Message)
	default:
		return "the cleanup did not end in time; check spec.desiredUpdate and spec.channel of the ClusterVersion"
	}
}

// publishEnding publishes the outcome of the attempt, if it is decided, and what the deletion did. The IDs are the IDs
// of the steps that publish outcomes, so that none is published twice.
func (s *scope[T]) publishEnding(ctx context.Context, end ending) error {
	if err := s.Notifier.PublishSteps(ctx, s.objectReference(), s.record); err != nil {
		return err
	}
	if end.upgraded {
		if err := s.publish(ctx, corev1.EventTypeNormal, "UpgradeCompleted", s.describe()+" is complete"); err != nil {
			return err
		}
	}
	if failure := s.failure(); end.failed && failure != nil {
		reason, result := "UpgradeFailed", "has failed"
		if s.outcome() == engine.OutcomeSkipped {
			reason, result = "UpgradeSkipped", "was skipped"
		}
		message := fmt.Sprintf("%s %s: %s: %s", s.describe(), result, failure.Type, failure.Message)
		if err := s.publish(ctx, corev1.EventTypeWarning, reason, message); err != nil {
			return err
		}
	}
	if end.reason != "" {
		if err := s.publish(ctx, corev1.EventTypeWarning, end.reason, end.message); err != nil {
			return err
		}
	}
	return s.Notifier.PendingError(string(s.obj.GetUID()))
}

// abandon removes what nothing will remove once the attempt is no longer managed.
func (s *scope[T]) abandon(ctx context.Context) error {
	if s.plan.Book.Abandon == nil {
		return nil
	}
	ctx, cancel := engine.WithTimeout(ctx, s.Clock, abandonTimeout)
	defer cancel()
	if err := s.plan.Book.Abandon(ctx); err != nil {
		return fmt.Errorf("abandoning the upgrade: %w", err)
	}
	return nil
}

// abandonInTime abandons the attempt. A deletion waits for it until its timeout.
func (s *scope[T]) abandonInTime(ctx context.Context) error {
	err := s.abandon(ctx)
	if err != nil && s.deleted() && !s.now.Before(s.cancelBy()) {
		s.log.Error(err, "resources of the upgrade are left behind")
		return nil
	}
	return err
}

// isForgotten reports whether neither the record nor the Lease of an object that has the finalizer tells of an attempt in
// progress, or that all steps of one have ended: for all that is known, it was begun and is not cleaned up.
func (s *scope[T]) isForgotten() bool {
	return !s.plan.FinalizerPreset && !s.claimed && !s.record.InProgress() &&
		!engine.Summarize(s.plan.Book, s.record, s.now, s.constraints()).Finished()
}
