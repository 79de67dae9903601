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

// abandonTimeout is how long the removal of what would be orphaned may take.
const abandonTimeout = time.Minute

// cancel ends the attempt of a deleted object. Before the commit, the cleanup and the final steps run first.
// After it, or if the attempt has succeeded, it ends at once. The deletion waits for the cleanup until the
// timeout, and at least one more pass is made after it.
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

// cancelBy returns until when the deletion waits for the cleanup.
func (s *scope[T]) cancelBy() time.Time {
	return s.obj.GetDeletionTimestamp().Add(s.plan.CancelTimeout)
}

// publishUntil returns when to publish the end of an attempt again. It backs off, but never keeps the lock
// beyond the given time.
func (s *scope[T]) publishUntil(until time.Time, err error) (time.Time, error) {
	if s.now.Before(until.Add(-maxBackoff)) {
		return time.Time{}, err
	}
	s.log.Error(err, "publishing the result, will be retried")
	return until, nil
}

// endingOf returns how the deletion ends the attempt at once. It returns nil if the attempt must be cleaned up,
// or if it is unknown whether it has commenced.
func (s *scope[T]) endingOf(ctx context.Context) (*ending, error) {
	phase, err := engine.CurrentPhase(ctx, s.Clock, s.plan.Book, s.record)
	switch {
	case !s.plan.Known:
		return &ending{reason: "CancellationAbandoned", message: "the type is not known to this release of the operator, so its own cleanup did not run; check spec.desiredUpdate and spec.channel of the ClusterVersion"}, nil
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

// isTransient reports whether an error may be gone on the next try.
func isTransient(err error) bool {
	return errors.Is(err, errStaleCache) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// ending describes how a deletion ends an unfinished attempt.
type ending struct {
	reason, message string // of a Warning Event, or empty
	failed          bool   // whether the failure of the attempt must be published
	upgraded        bool   // whether the success of the attempt must be published
}

// abandoned describes what a deletion no longer waits for.
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

// publishEnding publishes the outcome of the attempt, if it is decided, and what the deletion did. It uses the
// IDs of the steps that publish outcomes, so no outcome is published twice.
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

// abandon removes what would be orphaned once the attempt is no longer managed.
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

// abandonInTime abandons the attempt. A deletion waits for that until its timeout.
func (s *scope[T]) abandonInTime(ctx context.Context) error {
	err := s.abandon(ctx)
	if err != nil && s.deleted() && !s.now.Before(s.cancelBy()) {
		s.log.Error(err, "resources of the upgrade are left behind")
		return nil
	}
	return err
}

// isForgotten reports whether an object with the finalizer may have an attempt that was never cleaned up:
// neither the record nor the Lease shows an attempt in progress, and no record shows that all steps have ended.
func (s *scope[T]) isForgotten() bool {
	return !s.plan.FinalizerPreset && !s.claimed && !s.record.InProgress() &&
		!engine.Summarize(s.plan.Book, s.record, s.now, s.constraints()).Finished()
}
