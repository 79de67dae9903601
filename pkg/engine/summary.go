// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// UpgradeState is the progress of an upgrade.
type UpgradeState string

const (
	// Idle is an upgrade before its first step.
	Idle UpgradeState = "Idle"
	// Running is an upgrade whose steps are running.
	Running UpgradeState = "Running"
	// CleaningUp is an upgrade that failed and whose cleanup is not finished.
	CleaningUp UpgradeState = "CleaningUp"
	// Finishing is an upgrade whose outcome is final and whose final steps are not finished.
	Finishing UpgradeState = "Finishing"
	// Succeeded is an upgrade whose steps are all finished.
	Succeeded UpgradeState = "Succeeded"
	// Failed is an upgrade that failed and is cleaned up. Summary.Outcome tells failures apart.
	Failed UpgradeState = "Failed"
)

// Outcome is the result of an upgrade.
type Outcome string

const (
	// OutcomeUpgraded is an upgrade whose steps are all finished, except the final ones.
	OutcomeUpgraded Outcome = "Upgraded"
	// OutcomeFailed is an upgrade that failed.
	OutcomeFailed Outcome = "Failed"
	// OutcomeCancelled is an upgrade that was cancelled before its commit.
	OutcomeCancelled Outcome = "Cancelled"
	// OutcomeSkipped is an upgrade that did not commit, for one of SkipReasons.
	OutcomeSkipped Outcome = "Skipped"
)

// Summary is the interpretation of a record.
type Summary struct {
	State UpgradeState
	// Outcome is empty until it is decided, before the cleanup and the final steps.
	Outcome Outcome
	// Committed reports whether the record is past the point of no return.
	Committed bool
	// Current is the running step, or nil.
	Current *history.StepCondition
	// Failure is the step that failed, or nil.
	Failure *history.StepCondition
	// Held reports whether a hold is set and the upgrade is not committed.
	Held bool
	// Paused reports whether the current step waits for one of Runbook.PauseReasons.
	Paused bool
	// Slow reports whether the current step has made no progress for too long.
	Slow bool
	// SlowAt is when the current step becomes or became slow, or zero for never.
	SlowAt time.Time
	// Deadline is when the upgrade or the current step fails next, or zero for never.
	Deadline time.Time
}

// Finished reports whether there is nothing left to do.
func (s Summary) Finished() bool { return s.State == Succeeded || s.State == Failed }

// Summarize interprets a record. It makes no request and changes nothing.
func Summarize(book Runbook, record history.Record, now time.Time, constraints Constraints) Summary {
	p := pass{book: book, constraints: constraints}
	p.record.Conditions = migrate(book, renameSteps(book, record.Conditions), toMetaTime(now))
	conditions := p.record.Conditions
	s := Summary{State: Running, Committed: committed(book, conditions)}
	if len(conditions) == 0 {
		s.State = Idle
	}
	if failed := failure(book, conditions); failed != nil {
		c := *failed // the record may change later
		s.Failure = &c
		s.State, s.Outcome = CleaningUp, book.outcome(s.Failure, s.Committed)
	}
	step, index := current(book, conditions)
	if step == nil || book.indexOf(step.Name) >= len(book.Steps)+len(book.Cleanup) {
		s.State = Finishing
		if s.Failure == nil {
			s.Outcome = OutcomeUpgraded
		}
	}
	switch {
	case step == nil && s.Failure != nil:
		s.State = Failed
	case step == nil:
		s.State = Succeeded
	case index < 0: // its turn has come, but it has not begun
		s.Deadline = p.deadline(*step, history.StepCondition{})
	default:
		c := conditions[index]
		s.Current, s.Deadline = &c, p.deadline(*step, c)
		s.Paused = book.isPause(c)
		s.SlowAt = book.slowAt(*step, c)
		s.Slow = !s.SlowAt.IsZero() && !now.Before(s.SlowAt)
	}
	s.Held = step != nil && constraints.Hold != "" && beforeCommit(book, conditions, *step)
	return s
}

// current returns the step whose turn it is, with the index of its condition, or -1 before it begins. It
// returns nil if all steps are finished.
func current(book Runbook, conditions []history.StepCondition) (*Step, int) {
	steps := book.Steps
	if failure(book, conditions) != nil {
		steps = book.Cleanup
	}
	for _, steps := range [...][]Step{steps, book.Finally} {
		for i := range steps {
			at := indexOfCondition(conditions, steps[i].Name)
			if at < 0 || !isFinished(conditions[at]) {
				return &steps[i], at
			}
		}
	}
	return nil, -1
}

// failure returns the step that failed, or nil. Failures in the cleanup and in final steps are recorded, but
// the rest still runs.
func failure(book Runbook, conditions []history.StepCondition) *history.StepCondition {
	for i := range conditions {
		if c := &conditions[i]; hasFailed(*c) && book.indexOf(c.Type) < len(book.Steps) {
			return c
		}
	}
	return nil
}

// deadline returns when the step fails, or zero if it never does.
func (p *pass) deadline(step Step, c history.StepCondition) time.Time {
	due := step.FailBy
	if isInWindow(p.book, p.record.Conditions, step) {
		due = Earliest(due, p.constraints.CommitBy)
	}
	if step.FailAfter > 0 && c.StartTime != nil {
		due = Earliest(due, c.StartTime.Add(step.FailAfter))
	}
	return due
}

// slowAt returns when a step becomes slow because it has made no progress for SlowAfter, or zero for never. A
// step that waits for a time of the spec, or for a person, is not slow.
func (r Runbook) slowAt(step Step, c history.StepCondition) time.Time {
	if step.SlowAfter <= 0 || r.isPause(c) {
		return time.Time{}
	}
	return later(text.TimeOf(c.StartTime), text.TimeOf(c.ProgressTime)).Add(step.SlowAfter)
}

// isPause reports whether a step waits for one of the PauseReasons.
func (r Runbook) isPause(c history.StepCondition) bool {
	return c.Status == metav1.ConditionFalse && slices.Contains(r.PauseReasons, c.Reason)
}

// Earliest returns the earlier of two times, ignoring zero.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
