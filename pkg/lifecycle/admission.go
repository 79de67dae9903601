// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// pendingReason returns the status of an attempt that cannot start now, or nil if it should start or resume.
func (s *scope[T]) pendingReason(ctx context.Context) *summary {
	switch {
	case s.request.Withdrawn != "" && !s.claimed:
		return s.pendingStatus(engine.ReasonCancelled, s.request.Withdrawn, time.Time{})
	case !s.plan.Known && s.claimed: // this release cannot determine whether it has commenced
		return s.unknownTypeStatus()
	case !s.plan.Known:
		return s.rejectedStatus(reasonUnknownType, s.plan.Unknown)
	case s.plan.lockStep() != "" && (s.claimed || !s.upgradeAt.IsZero()): // it waits in its steps
		return nil
	case s.plan.lockStep() != "":
		return s.rejectedStatus(reasonInvalidTime, s.request.InvalidTime)
	}
	admission, err := engine.Admit(ctx, s.Clock, s.plan.Book, s.record, s.constraints())
	closed := admission.Closed
	switch {
	case err != nil:
		return s.unreadableStatus(err)
	case s.claimed: // there is no record of it: the engine adopts what has commenced and cleans up after the window
		return nil
	case closed.Failed() && closed.Reason() == engine.ReasonAlreadyAtVersion:
		return s.alreadyAtVersionStatus(closed.Message())
	case admission.Begun:
		return nil
	case closed.Failed():
		return s.rejectedStatus(closed.Reason(), closed.Message())
	case s.upgradeAt.IsZero():
		return s.rejectedStatus(reasonInvalidTime, s.request.InvalidTime)
	case admission.Early:
		return s.scheduledStatus(ctx)
	case admission.Expired:
		return s.windowMissedStatus()
	case closed != engine.Result{}:
		return s.heldStatus(closed.Reason(), closed.Message())
	case s.hold != "":
		return s.heldStatus(reasonHeld, s.hold)
	case s.request.Paused != "":
		return s.heldStatus(reasonPaused, s.request.Paused)
	}
	return nil
}

// heldStatus returns the status of an attempt that waits in its window.
func (s *scope[T]) heldStatus(reason, message string) *summary {
	status := s.pendingStatus(sanitizeReason(reason), message+s.untilWindowEnd("; the window closes at %s"), s.windowEnd())
	status.held = true
	return status
}

// scheduledStatus returns the status of an attempt whose time has not come. The message begins with what would
// prevent the start.
func (s *scope[T]) scheduledStatus(ctx context.Context) *summary {
	precheck, recheckAt := s.precheck(ctx)
	message := "the upgrade starts at " + text.FormatTime(s.upgradeAt)
	if precheck.status == metav1.ConditionFalse {
		message = joinPreCheck(precheck, message)
	}
	if hold := s.holdReason(); hold != "" {
		message = hold + "; " + message + " unless it is still on hold"
	}
	status := s.pendingStatus(reasonScheduled, message, s.upgradeAt)
	status.precheck, status.recheckAt, status.early = precheck, recheckAt, true
	status.phase = s.waitingPhase(precheck)
	return status
}

// waitingPhase returns the phase of an attempt whose time has not come: New until its gates are first
// evaluated, then Pending.
func (s *scope[T]) waitingPhase(precheck condition) history.Phase {
	if precheck == (condition{}) && s.record.Phase == history.PhaseNew {
		return history.PhaseNew
	}
	return history.PhasePending
}

// joinPreCheck puts a failed pre-check before a message.
func joinPreCheck(precheck condition, message string) string {
	return "pre-check failed: " + precheck.message + "; " + message
}

func (s *scope[T]) pendingStatus(reason, message string, next time.Time) *summary {
	return &summary{
		phase:          history.PhasePending,
		accepted:       valid,
		progressing:    condition{metav1.ConditionFalse, reason, message},
		outcome:        outcome{reason, message},
		nextTransition: next,
	}
}

// rejectedStatus returns the status of an attempt that cannot run as specified. The spec can be corrected until
// the window closes.
func (s *scope[T]) rejectedStatus(reason, message string) *summary {
	status := s.pendingStatus(reason, message, s.windowEnd())
	status.accepted = condition{metav1.ConditionFalse, reason, message}
	if s.constraints().IsExpired(s.now) {
		s.fail(status, reason, message)
	}
	return status
}

// lockedStatus returns the status of an attempt that waits for the lock, or that has lost it. It does not
// depend on the time, because two processes whose clocks differ would overwrite each other.
func (s *scope[T]) lockedStatus(holder string) *summary {
	message := "waiting for the upgrade of " + holder + "; only one runs at a time"
	status := s.pendingStatus(ReasonClusterLocked, message, time.Time{})
	switch {
	case s.record.InProgress():
		status.phase, status.outcome = s.record.Phase, outcome{}
	case !s.upgradeAt.IsZero():
		status.nextTransition = s.windowEnd()
		status.progressing.message += s.untilWindowEnd(" (until %s)")
	}
	status.accepted = condition{metav1.ConditionFalse, ReasonClusterLocked, message}
	return status
}

// windowMissedStatus returns the status of an attempt that did not start in its window. The record still has
// the last reason for waiting.
func (s *scope[T]) windowMissedStatus() *summary {
	message := "the upgrade did not start by " + text.FormatTime(s.windowEnd()) + ", when its window closed"
	status := s.pendingStatus(reasonWindowMissed, message, time.Time{})
	switch s.record.Reason {
	case "", reasonScheduled:
	case ReasonClusterLocked:
		status.accepted = condition{metav1.ConditionFalse, ReasonClusterLocked, s.record.Message}
		message += "; it was " + s.record.Message
	default:
		message += "; " + s.record.Message
	}
	s.fail(status, reasonWindowMissed, message)
	return status
}

func (s *scope[T]) alreadyAtVersionStatus(message string) *summary {
	status := s.pendingStatus(engine.ReasonAlreadyAtVersion, message, time.Time{})
	status.phase, status.finished = history.PhaseUpgraded, true
	status.succeeded = condition{metav1.ConditionTrue, engine.ReasonAlreadyAtVersion, message}
	return status
}

func (s *scope[T]) unreadableStatus(err error) *summary {
	status := s.pendingStatus(reasonCannotObserve, err.Error(), time.Time{})
	status.phase = history.PhaseUnknown
	status.accepted = condition{metav1.ConditionUnknown, reasonCannotObserve, "the cluster cannot be read"}
	status.progressing.status = metav1.ConditionUnknown
	status.outcome = outcome{s.record.Reason, s.record.Message} // an error does not hide what it was waiting for
	return status
}

// unknownTypeStatus returns the status of an attempt in progress whose runbook is no longer known.
func (s *scope[T]) unknownTypeStatus() *summary {
	status := s.unreadableStatus(errors.New(s.plan.Unknown))
	status.accepted = condition{metav1.ConditionFalse, reasonUnknownType, s.plan.Unknown}
	return status
}

// fail ends an attempt that never started.
func (s *scope[T]) fail(status *summary, reason, message string) {
	status.phase, status.finished, status.nextTransition = history.PhaseFailed, true, time.Time{}
	status.outcome = outcome{reason, message}
	status.progressing = condition{metav1.ConditionFalse, reason, s.withRetry(message)}
	status.succeeded = condition{metav1.ConditionFalse, reason, s.withRetry(message)}
}

// withRetry appends how to try again.
func (s *scope[T]) withRetry(message string) string {
	if s.plan.Retry == "" || s.deleted() {
		return message
	}
	return message + "; to try again, " + s.plan.Retry
}
