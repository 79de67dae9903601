// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// part is a part of a runbook.
type part int

const (
	theSteps part = iota
	theCleanup
	theEnd
)

// check checks the engine's guarantees about a call of a step.
func (w *world) check(book engine.Runbook, i int, part part, run engine.Run) {
	w.t.Helper()
	if w.store.refused {
		w.t.Error("a step is called although a save failed in this pass")
	}
	aborted := isAborted(book, w.store.load())
	steps, cleanup, before := book.Steps, part == theCleanup, book.Steps[:0]
	switch {
	case cleanup:
		steps = book.Cleanup
	case part == theEnd && aborted:
		steps, before = book.Finally, book.Cleanup
	case part == theEnd:
		steps, before = book.Finally, book.Steps
	}
	step, stored, now := steps[i], withCurrentNames(book, w.store.load()), w.clock.Now()

	c := condition(stored, step.Name)
	switch {
	case c == nil && step.Repeatable:
		return // it is called as if for the first time
	case c == nil:
		w.t.Fatalf("%s is called, and the store does not hold that it began", step.Name)
	case c.CompleteTime != nil:
		w.t.Errorf("%s is called, and it is over", step.Name)
	case c.StartTime == nil || !run.Since.Equal(c.StartTime.Time):
		w.t.Errorf("%s gets %s as its start, the store has %s", step.Name, run.Since, c.StartTime)
	case stored.StartTime == nil || !run.Started.Equal(stored.StartTime.Time):
		w.t.Errorf("%s gets %s as the start of the upgrade, the store has %s", step.Name, run.Started, stored.StartTime)
	case !run.Now.Equal(now):
		w.t.Errorf("%s gets the time %s, the clock shows %s", step.Name, run.Now, now)
	}
	for _, before := range slices.Concat(before, steps[:i]) {
		if b := condition(stored, before.Name); b == nil || b.CompleteTime == nil {
			w.t.Errorf("%s is called, and the store does not hold the end of %s", step.Name, before.Name)
		}
	}
	if (run.Failure != nil) != aborted {
		w.t.Errorf("%s gets the failure %v; aborted: %t", step.Name, run.Failure, aborted)
	}
	if aborted != cleanup && part != theEnd {
		w.t.Errorf("%s is called; aborted: %t, cleanup: %t", step.Name, aborted, cleanup)
	}
	if part != theCleanup && step.FailAfter > 0 && !now.Before(c.StartTime.Add(step.FailAfter)) {
		w.t.Errorf("%s is called at %s, after its FailAfter", step.Name, now)
	}
	commit := indexOfCommit(book)
	commits := commit < len(book.Steps)
	if part != theSteps || i > commit {
		return
	}
	if commits {
		if committed := condition(stored, book.Steps[commit].Name); committed != nil && committed.CompleteTime != nil {
			return
		}
	}
	constraints := w.constraints()
	if (commits || i == 0) && !constraints.CommitBy.IsZero() && !now.Before(constraints.CommitBy) {
		w.t.Errorf("%s is called at %s, after the window closed", step.Name, now)
	}
	if constraints.Hold != "" || constraints.Cancel != "" {
		w.t.Errorf("%s is called although the upgrade is held or cancelled", step.Name)
	}
}

func indexOfCommit(book engine.Runbook) int {
	for i, step := range book.Steps {
		if step.Commit != nil {
			return i
		}
	}
	return len(book.Steps)
}

func isAborted(book engine.Runbook, record history.Record) bool {
	return slices.ContainsFunc(record.Conditions, func(c history.StepCondition) bool {
		cleans := slices.ContainsFunc(slices.Concat(book.Cleanup, book.Finally), func(s engine.Step) bool { return s.Name == c.Type })
		return c.CompleteTime != nil && c.Status == metav1.ConditionFalse && !cleans
	})
}

// condition returns the condition of that type. If a damaged record has several, it prefers a
// finished one.
func condition(record history.Record, name string) *history.StepCondition {
	var found *history.StepCondition
	for i := range record.Conditions {
		c := &record.Conditions[i]
		if c.Type == name && (found == nil || found.CompleteTime == nil && c.CompleteTime != nil) {
			found = c
		}
	}
	return found
}

// withCurrentNames returns the record with the present names of the steps.
func withCurrentNames(book engine.Runbook, record history.Record) history.Record {
	for _, step := range slices.Concat(book.Steps, book.Cleanup, book.Finally) {
		for _, formerName := range step.FormerNames {
			if old := condition(record, formerName); old != nil && condition(record, step.Name) == nil {
				old.Type = step.Name
			}
		}
	}
	return record
}
