// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// abandonTimeout is how long removing what would be orphaned may take.
const abandonTimeout = time.Minute

// cancel ends the attempt of an object that is being deleted: before the commit by the cleanup and the
// final steps, once it has committed or succeeded at once, and never later than the timeout.
func (s *scope[T]) cancel(ctx context.Context) (time.Time, error) {
	if !s.record.InProgress() && !s.claimed {
		return time.Time{}, s.release(ctx)
	}
	last := s.obj.GetDeletionTimestamp().Add(s.plan.CancelTimeout)
	expired := !s.now.Before(last)
	var end ending
	switch committed, err := engine.Committed(ctx, s.Clock, s.plan.Book, s.record); {
	case !s.plan.Known:
		end = ending{reason: "CancellationAbandoned", message: "the type is not known to this release of the operator, so nothing was cleaned up"}
	case s.outcome() == engine.OutcomeUpgraded:
		end = ending{upgraded: true}
	case committed && s.failure() != nil:
		end = ending{failed: true}
	case committed:
		end = ending{reason: "UpgradeContinues", message: s.describe() + " had commenced; it continues without this " + s.Kind.GroupVersionKind().Kind}
	case expired:
		end = ending{
			reason: "CancellationAbandoned", message: s.abandoned(),
			failed: s.failure() != nil && s.failure().Reason != engine.ReasonCancelled,
		}
	case err != nil:
		return time.Time{}, err
	default:
		next, err := s.startOrResume(ctx)
		if next.IsZero() || next.After(last) {
			next = last
		}
		return next, err
	}
	if err := s.abandon(ctx); err != nil {
		if !expired {
			return time.Time{}, err
		}
		s.log.Error(err, "resources of the upgrade are left behind")
	}
	if err := s.publishEnding(ctx, end); err != nil {
		if !expired && s.now.Before(s.obj.GetDeletionTimestamp().Add(publishTimeout)) {
			return time.Time{}, err
		}
		s.log.Error(err, "publishing the end of the upgrade")
	}
	return time.Time{}, s.release(ctx)
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

// publishEnding publishes the outcome of the attempt, if it is decided, and what the deletion did. The
// IDs are those of the steps that publish outcomes, so that none is published twice.
func (s *scope[T]) publishEnding(ctx context.Context, end ending) error {
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
