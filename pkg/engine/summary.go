// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// State says what a record tells about an upgrade.
type State string

const (
	// Idle is an upgrade of which no step has begun.
	Idle State = "Idle"
	// Running is an upgrade whose steps are being taken.
	Running State = "Running"
	// CleaningUp is an upgrade that was given up and whose clean-up is not over.
	CleaningUp State = "CleaningUp"
	// Succeeded is an upgrade all of whose steps are over.
	Succeeded State = "Succeeded"
	// Failed is an upgrade that was given up and cleaned up.
	Failed State = "Failed"
)

// Summary is what a record says of an upgrade.
type Summary struct {
	State     State
	Committed bool // whether the point of no return is passed
	// Current is the step that is being tried; nil if there is none.
	Current *history.StepCondition
	// Failure is the step because of which the upgrade was given up; nil if it was not.
	Failure *history.StepCondition
	// Stalled says that the current step takes longer than it should.
	Stalled bool
	// Deadline is the next time at which something is given up, and zero if there is none.
	Deadline time.Time
}

// Finished says whether nothing is left to do.
func (s Summary) Finished() bool { return s.State == Succeeded || s.State == Failed }

// Summarize reads a record. It asks nobody and changes nothing.
func Summarize(book Runbook, record history.Record, now time.Time) Summary {
	at := toMetaTime(now)
	conditions := migrate(book, renameSteps(book, record.Conditions), at)
	summary := Summary{State: Running, Committed: committed(book, conditions), Failure: failure(book, conditions)}
	if len(conditions) == 0 {
		summary.State = Idle
	}
	if summary.Failure != nil {
		summary.State = CleaningUp
	}
	step, index := current(book, conditions)
	switch {
	case step == nil && summary.Failure != nil:
		summary.State = Failed
	case step == nil:
		summary.State = Succeeded
	case index < 0: // its turn has come, but it has not begun
		summary.Deadline = deadline(book, conditions, *step, history.StepCondition{})
	default:
		c := conditions[index]
		summary.Current = &c
		summary.Stalled = step.SlowAfter > 0 && !now.Before(timeOf(c.StartTime).Add(step.SlowAfter))
		summary.Deadline = deadline(book, conditions, *step, c)
	}
	return summary
}

// current returns the step whose turn it is, with the index of its condition
// (-1 if it has not begun), or nil if all are over.
func current(book Runbook, conditions []history.StepCondition) (*Step, int) {
	steps := book.Steps
	if failure(book, conditions) != nil {
		steps = book.Cleanup
	}
	for i := range steps {
		at := indexOfCondition(conditions, steps[i].Name)
		if at < 0 || !isFinished(conditions[at]) {
			return &steps[i], at
		}
	}
	return nil, -1
}

// failure returns the step that failed, if one did. What fails in the clean-up
// is recorded, and the clean-up goes on.
func failure(book Runbook, conditions []history.StepCondition) *history.StepCondition {
	for i := range conditions {
		if c := &conditions[i]; hasFailed(*c) && book.indexOf(c.Type) < len(book.Steps) {
			return c
		}
	}
	return nil
}

func committed(book Runbook, conditions []history.StepCondition) bool {
	commit := book.commitIndex()
	if commit == len(book.Steps) {
		return false
	}
	at := indexOfCondition(conditions, book.Steps[commit].Name)
	return at >= 0 && conditions[at].Status == metav1.ConditionTrue && isFinished(conditions[at])
}

// beforeCommit says whether the step leads up to a commit that has not happened:
// then the window, a hold and a cancellation bear on it.
func beforeCommit(book Runbook, conditions []history.StepCondition, step Step) bool {
	index := book.indexOf(step.Name)
	return index < len(book.Steps) && index <= book.commitIndex() && !committed(book, conditions)
}

// deadline is when the step is given up, or zero if it never is.
func deadline(book Runbook, conditions []history.StepCondition, step Step, c history.StepCondition) time.Time {
	var at time.Time
	if beforeCommit(book, conditions, step) {
		at = book.CommitDeadline
	}
	if step.FailAfter > 0 && c.StartTime != nil {
		if own := c.StartTime.Add(step.FailAfter); at.IsZero() || own.Before(at) {
			at = own
		}
	}
	return at
}
