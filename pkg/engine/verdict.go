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

// Verdict is what a record says of an upgrade.
type Verdict struct {
	State     State
	Committed bool // whether the point of no return is passed
	// Current is the step that is being tried; nil if there is none.
	Current *history.StepCondition
	// Failure is the step because of which the upgrade was given up; nil if it was not.
	Failure *history.StepCondition
	// Slow says that the current step takes longer than it should.
	Slow bool
	// Deadline is the next time at which something is given up, and zero if there is none.
	Deadline time.Time
}

// Over says whether nothing is left to do.
func (v Verdict) Over() bool { return v.State == Succeeded || v.State == Failed }

// Assess reads a record. It asks nobody and changes nothing.
func Assess(book Runbook, record history.History, now time.Time) Verdict {
	at := stamp(now)
	conditions := align(book, rename(book, record.Conditions), at)
	verdict := Verdict{State: Running, Committed: committed(book, conditions), Failure: failure(book, conditions)}
	if len(conditions) == 0 {
		verdict.State = Idle
	}
	if verdict.Failure != nil {
		verdict.State = CleaningUp
	}
	step, index := current(book, conditions)
	switch {
	case step == nil && verdict.Failure != nil:
		verdict.State = Failed
	case step == nil:
		verdict.State = Succeeded
	case index < 0: // its turn has come, but it has not begun
		verdict.Deadline = deadline(book, conditions, *step, history.StepCondition{})
	default:
		c := conditions[index]
		verdict.Current = &c
		verdict.Slow = step.SlowAfter > 0 && !now.Before(timeOf(c.StartTime).Add(step.SlowAfter))
		verdict.Deadline = deadline(book, conditions, *step, c)
	}
	return verdict
}

// current returns the step whose turn it is, with the index of its condition
// (-1 if it has not begun), or nil if all are over.
func current(book Runbook, conditions []history.StepCondition) (*Step, int) {
	steps := book.Steps
	if failure(book, conditions) != nil {
		steps = book.Cleanup
	}
	for i := range steps {
		at := find(conditions, steps[i].Name)
		if at < 0 || !over(conditions[at]) {
			return &steps[i], at
		}
	}
	return nil, -1
}

// failure returns the step that failed, if one did. What fails in the clean-up
// is recorded, and the clean-up goes on.
func failure(book Runbook, conditions []history.StepCondition) *history.StepCondition {
	for i := range conditions {
		if c := &conditions[i]; hasFailed(*c) && book.place(c.Type) < len(book.Steps) {
			return c
		}
	}
	return nil
}

func committed(book Runbook, conditions []history.StepCondition) bool {
	commit := book.commit()
	if commit == len(book.Steps) {
		return false
	}
	at := find(conditions, book.Steps[commit].Name)
	return at >= 0 && conditions[at].Status == metav1.ConditionTrue && over(conditions[at])
}

// revocable says whether the step leads up to a commit that has not happened:
// then the window, a hold and a cancellation bear on it.
func revocable(book Runbook, conditions []history.StepCondition, step Step) bool {
	place := book.place(step.Name)
	return place < len(book.Steps) && place <= book.commit() && !committed(book, conditions)
}

// deadline is when the step is given up, or zero if it never is.
func deadline(book Runbook, conditions []history.StepCondition, step Step, c history.StepCondition) time.Time {
	var at time.Time
	if revocable(book, conditions, step) {
		at = book.CommitBy
	}
	if step.FailAfter > 0 && c.StartTime != nil {
		if own := c.StartTime.Add(step.FailAfter); at.IsZero() || own.Before(at) {
			at = own
		}
	}
	return at
}
