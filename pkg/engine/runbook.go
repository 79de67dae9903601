// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"time"
)

// Step is one line of a runbook.
type Step struct {
	// Name is the condition's type: what holds once the step is done. It is
	// unique in the runbook, the clean-up included.
	Name string
	// FormerNames are the names that the step had in earlier releases.
	FormerNames []string
	// Doc is one sentence for people.
	Doc string
	// Do does the step, or says why it cannot yet.
	Do UpgradeStep
	// PreCheck says, without changing anything, what Do would wait for if the
	// upgrade began now. It is asked ahead of time; nil if nothing can be known then.
	PreCheck UpgradeStep
	// Reached says, without changing anything, whether what the step is named
	// for holds already, for this very target. It is asked where Do may no
	// longer be called. Nil means no.
	Reached func(context.Context) (bool, error)
	// Commits marks the point of no return. Exactly one step of a runbook has it.
	Commits bool
	// SlowAfter is when people are told that the step takes long; 0 is never.
	SlowAfter time.Duration
	// FailAfter is when the upgrade is given up because of this step; 0 is never.
	FailAfter time.Duration
	// FailReasons are those reasons of waiting that say why a deadline was missed
	// better than the deadline does: a failure at the deadline carries them.
	FailReasons []string
}

// Runbook is an ordered table of steps, and what is done instead of the rest
// of them once the upgrade is given up.
type Runbook struct {
	// CommitDeadline is the end of the window: an upgrade that is not committed by
	// then is given up. Zero is no end.
	CommitDeadline time.Time
	// PauseReason says why no step may act before the commit; empty: nothing holds.
	PauseReason string
	// CancelReason says why the upgrade is to be given up unless it is committed;
	// empty: it is not.
	CancelReason string
	// Abandon takes back what somebody would have to take back later, when there
	// will be nobody: the upgrade is let go of although it is not over. It does
	// not wait. Nil: there is nothing such. The engine itself never calls it.
	Abandon func(context.Context) error

	Steps   []Step
	Cleanup []Step
}

var stepName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Validate says what is wrong with the table, all of it.
func (b Runbook) Validate() error {
	var errs []error
	names := map[string]bool{}
	checkName := func(name string) {
		switch {
		case !stepName.MatchString(name):
			errs = append(errs, fmt.Errorf("step name %q is not one CamelCase word of at most 64 letters and digits", name))
		case names[name]:
			errs = append(errs, fmt.Errorf("step name %s is used twice", name))
		}
		names[name] = true
	}
	commits := 0
	for i, step := range b.allSteps() {
		checkName(step.Name)
		for _, formerName := range step.FormerNames {
			checkName(formerName)
		}
		if step.Do == nil {
			errs = append(errs, fmt.Errorf("step %s does nothing: Do is nil", step.Name))
		}
		if step.Doc == "" {
			errs = append(errs, fmt.Errorf("step %s has no Doc", step.Name))
		}
		switch {
		case !step.Commits:
		case i >= len(b.Steps):
			errs = append(errs, fmt.Errorf("step %s commits, but belongs to the clean-up", step.Name))
		case step.Reached == nil:
			errs = append(errs, fmt.Errorf("step %s commits, but has no Reached to tell whether it did", step.Name))
		}
		if step.Commits {
			commits++
		}
	}
	if commits != 1 {
		errs = append(errs, fmt.Errorf("%d steps commit, exactly one must", commits))
	}
	return errors.Join(errs...)
}

// allSteps yields the steps and, after them, those of the clean-up, each with its place.
func (b Runbook) allSteps() iter.Seq2[int, *Step] {
	return func(yield func(int, *Step) bool) {
		for i := range b.Steps {
			if !yield(i, &b.Steps[i]) {
				return
			}
		}
		for i := range b.Cleanup {
			if !yield(len(b.Steps)+i, &b.Cleanup[i]) {
				return
			}
		}
	}
}

// indexOf is where the table has the step of that name, -1 if nowhere. Those of
// the clean-up come after all others.
func (b Runbook) indexOf(name string) int {
	for i, step := range b.allSteps() {
		if step.Name == name {
			return i
		}
	}
	return -1
}

// commitIndex is the index of the step that commits; past the end if there is none.
func (b Runbook) commitIndex() int {
	for i := range b.Steps {
		if b.Steps[i].Commits {
			return i
		}
	}
	return len(b.Steps)
}
