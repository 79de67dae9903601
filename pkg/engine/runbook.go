// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Gate is a read-only check that a step depends on. It is evaluated in the very pass in which the
// step acts.
type Gate struct {
	Name  string // one CamelCase word, unique among the gates of the step
	Check UpgradeStep
}

// KeepAlive renews what must stay alive while a step waits, such as a lease. It never blocks the
// step: its errors are appended to the step's message.
type KeepAlive struct {
	Name  string // one CamelCase word, unique among the keep-alives of the step
	Renew UpgradeStep
}

// Milestone is what a step means to notifications and to the status.
type Milestone = history.Milestone

// The milestones of an upgrade.
const (
	MilestoneStarted              Milestone = "Started"              // the upgrade has begun
	MilestoneDelayed              Milestone = "Delayed"              // it takes long to commence
	MilestoneCommenced            Milestone = "Commenced"            // the point of no return is passed
	MilestoneControlPlaneUpgraded Milestone = "ControlPlaneUpgraded" // the control plane is at the version
	MilestoneWorkersUpgraded      Milestone = "WorkersUpgraded"      // the step takes as long as the worker nodes do
	MilestoneCompleted            Milestone = "Completed"            // the upgrade is complete
	MilestoneFailed               Milestone = "Failed"               // the upgrade failed; recorded as Cancelled or Skipped where it was that
	MilestoneCancelled            Milestone = "Cancelled"            // the upgrade was cancelled before its commit
	MilestoneSkipped              Milestone = "Skipped"              // the upgrade was skipped, see Runbook.SkipReasons
)

// Step is one line of a runbook.
type Step struct {
	// Name is the condition's type: what holds once the step is done. It is unique in the runbook.
	Name string
	// FormerNames are the names that the step had in earlier releases.
	FormerNames []string
	// Doc is one sentence for people.
	Doc string
	// Observe reads whether the step has acted already, and returns the zero Result if it has not.
	// Any other Result answers for the step: neither the gates nor Do are called. Nil means that Do
	// is always called.
	Observe UpgradeStep
	// Gates must all pass before Do is called, in the same pass. The first that does not pass, or
	// that returns an error, answers for the step.
	Gates []Gate
	// Do does the step, or reports why it cannot yet.
	Do UpgradeStep
	// Undo takes back what Do did, as far as that is still possible. It is idempotent, and is called
	// while a hold is in effect; Do is called again when the hold is lifted. Only the committing step
	// may have it. That it acts is saved before, see Run.Requested. Nil means that a hold leaves alone
	// what Do did.
	Undo UpgradeStep
	// KeepAlive is renewed while the step waits, also while it is held.
	KeepAlive []KeepAlive
	// PreCheck reports what the step would wait for if the upgrade began now. It changes nothing of the
	// cluster; it may request an analysis. Nil means that this cannot be determined ahead of time.
	PreCheck UpgradeStep
	// Reached is read-only: it reports whether what the step is named for holds already, for this
	// target. It decides where Do may no longer be called. Nil means that it does not hold.
	Reached func(context.Context) (bool, error)
	// Items is read-only: it returns the items of the step as they are when Do may no longer be called.
	// Nil means that those recorded stay.
	Items func(context.Context) ([]history.StepItem, error)
	// Commits marks the point of no return. Exactly one step of a runbook has it.
	Commits bool
	// Skip answers for a step that has nothing to do in this upgrade, which is known from the start. The
	// step is not called, and saved with what follows. The zero Result means that it is called.
	Skip Result
	// Repeatable marks a step whose first call may be lost in a crash together with the result of the
	// step before: both are then called again. That the step began is saved with its first answer, by one
	// write instead of two.
	Repeatable bool
	// Milestone is what the step means to notifications and to the status; empty means nothing.
	Milestone Milestone
	// SlowAfter is the time after which the step is reported as stalled; 0 means never.
	SlowAfter time.Duration
	// FailAfter is the time after which the step fails; 0 means never.
	FailAfter time.Duration
	// FailBy is the time at which the step fails; zero means never.
	FailBy time.Time
	// FailReason is what failing this step means; empty means TimedOut. A step that misses the
	// window fails for this reason only if it was waiting for this reason.
	FailReason string
}

// Runbook is a table: an ordered list of steps, and what is done instead of the rest of them once
// the upgrade has failed.
type Runbook struct {
	Steps []Step
	// Cleanup runs instead of the remaining steps once a step has failed.
	Cleanup []Step
	// Finally runs after the last step or after the cleanup. The outcome is in the record before.
	Finally []Step
	// MissedAs is the reason of an upgrade that did not commit in its window; empty means
	// WindowMissed.
	MissedAs string
	// SkipReasons are the reasons of a failure before the commit that mean that the upgrade was
	// skipped, not that it failed.
	SkipReasons []string
	// PauseReasons are the reasons of a waiting step that pause the upgrade: nothing is left to do
	// until a time has come or a user has acted.
	PauseReasons []string
	// UncommittedReasons are the reasons with which the committing step is skipped because there is
	// nothing to commit to: the point of no return is not passed then.
	UncommittedReasons []string
	// AdoptAfter names a step before the committing one. Until it is done, an upgrade that the cluster
	// has begun is that of another record: nothing is adopted, and Committed reports no. Empty means
	// that every upgrade of the cluster to the target is that of this record.
	AdoptAfter string
	// Abandon removes what would be orphaned if the controller stopped managing an unfinished
	// upgrade. It does not wait. The engine never calls it. Nil means that nothing is to be removed.
	Abandon func(context.Context) error

	problems []error // what could not be inserted
}

// InsertBefore returns the runbook with another step before the one of that name. If no step of
// that name exists, Validate returns an error.
func (b Runbook) InsertBefore(name string, step Step) Runbook { return b.insert(name, 0, step) }

// InsertAfter returns the runbook with another step after the one of that name. If no step of that
// name exists, Validate returns an error.
func (b Runbook) InsertAfter(name string, step Step) Runbook { return b.insert(name, 1, step) }

func (b Runbook) insert(name string, offset int, step Step) Runbook {
	for _, steps := range []*[]Step{&b.Steps, &b.Cleanup, &b.Finally} {
		if at := slices.IndexFunc(*steps, func(s Step) bool { return s.Name == name }); at >= 0 {
			*steps = slices.Insert(slices.Clone(*steps), at+offset, step)
			return b
		}
	}
	b.problems = append(slices.Clip(b.problems), fmt.Errorf("step %s cannot be inserted next to step %s, which does not exist", step.Name, name))
	return b
}

// WithCommitGates returns the runbook with more gates of the committing step, evaluated before its
// other gates.
func (b Runbook) WithCommitGates(gates ...Gate) Runbook {
	b.Steps = slices.Clone(b.Steps)
	if i := b.commitIndex(); i < len(b.Steps) {
		b.Steps[i].Gates = slices.Concat(gates, b.Steps[i].Gates)
	}
	return b
}

var namePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Validate returns an error that lists everything that is wrong with the table.
func (b Runbook) Validate() error {
	errs := slices.Clone(b.problems)
	names := map[string]bool{}
	commits := 0
	for i, step := range b.allSteps() {
		errs = append(errs, step.validateNames(names)...)
		errs = append(errs, step.validate()...)
		switch {
		case !step.Commits:
		case i >= len(b.Steps):
			errs = append(errs, fmt.Errorf("step %s commits, but is not one of the steps before the cleanup", step.Name))
		case step.Reached == nil:
			errs = append(errs, fmt.Errorf("step %s commits, but has no Reached", step.Name))
		}
		if step.Commits {
			commits++
		}
	}
	if commits != 1 {
		errs = append(errs, fmt.Errorf("%d steps commit, exactly one must", commits))
	}
	if b.AdoptAfter != "" && !slices.ContainsFunc(b.Steps[:min(b.commitIndex(), len(b.Steps))], func(s Step) bool { return s.Name == b.AdoptAfter }) {
		errs = append(errs, fmt.Errorf("AdoptAfter: no step before the committing one has the name %s", b.AdoptAfter))
	}
	for _, reason := range slices.Concat([]string{b.MissedAs}, b.SkipReasons, b.PauseReasons, b.UncommittedReasons) {
		if reason != "" && !namePattern.MatchString(reason) {
			errs = append(errs, fmt.Errorf("reason %q is not one CamelCase word", reason))
		}
	}
	return errors.Join(errs...)
}

// validateNames adds the names of the step to those that are in use.
func (s *Step) validateNames(inUse map[string]bool) []error {
	var errs []error
	for _, name := range append([]string{s.Name}, s.FormerNames...) {
		switch {
		case !namePattern.MatchString(name):
			errs = append(errs, fmt.Errorf("step name %q is not one CamelCase word of at most 64 letters and digits", name))
		case inUse[name]:
			errs = append(errs, fmt.Errorf("step name %s is used twice", name))
		}
		inUse[name] = true
	}
	return errs
}

func (s *Step) validate() []error {
	var errs []error
	if s.Do == nil {
		errs = append(errs, fmt.Errorf("step %s does nothing: Do is nil", s.Name))
	}
	if s.Doc == "" {
		errs = append(errs, fmt.Errorf("step %s has no Doc", s.Name))
	}
	if s.Undo != nil && !s.Commits {
		errs = append(errs, fmt.Errorf("step %s has Undo, but does not commit", s.Name))
	}
	if !s.Skip.IsZero() && s.Skip.outcome != skipped {
		errs = append(errs, fmt.Errorf("step %s: Skip has another result than one of engine.Skip", s.Name))
	}
	if !s.Skip.IsZero() && s.Commits {
		errs = append(errs, fmt.Errorf("step %s commits, but has Skip", s.Name))
	}
	if s.FailReason != "" && !namePattern.MatchString(s.FailReason) {
		errs = append(errs, fmt.Errorf("step %s: FailReason %q is not one CamelCase word", s.Name, s.FailReason))
	}
	inUse := map[string]bool{}
	part := func(kind, name string, do UpgradeStep) {
		switch {
		case !namePattern.MatchString(name):
			errs = append(errs, fmt.Errorf("step %s: %s name %q is not one CamelCase word of at most 64 letters and digits", s.Name, kind, name))
		case inUse[kind+name]:
			errs = append(errs, fmt.Errorf("step %s: %s name %s is used twice", s.Name, kind, name))
		case do == nil:
			errs = append(errs, fmt.Errorf("step %s: %s %s does nothing", s.Name, kind, name))
		}
		inUse[kind+name] = true
	}
	for _, gate := range s.Gates {
		part("gate", gate.Name, gate.Check)
	}
	for _, keepAlive := range s.KeepAlive {
		part("keep-alive", keepAlive.Name, keepAlive.Renew)
	}
	return errs
}

// allSteps returns the steps, those of the cleanup, and the final ones, each with its index.
func (b Runbook) allSteps() iter.Seq2[int, *Step] {
	return func(yield func(int, *Step) bool) {
		index := 0
		for _, steps := range [...][]Step{b.Steps, b.Cleanup, b.Finally} {
			for i := range steps {
				if !yield(index, &steps[i]) {
					return
				}
				index++
			}
		}
	}
}

// indexOf returns the index of the step of that name, or -1. Those of the cleanup come after all
// steps, and the final ones come last.
func (b Runbook) indexOf(name string) int {
	for i, step := range b.allSteps() {
		if step.Name == name {
			return i
		}
	}
	return -1
}

// commitIndex returns the index of the step that commits, or the number of steps.
func (b Runbook) commitIndex() int {
	for i := range b.Steps {
		if b.Steps[i].Commits {
			return i
		}
	}
	return len(b.Steps)
}

// outcome returns what a failure before or after the commit makes of the upgrade.
func (b Runbook) outcome(failure *history.StepCondition, committed bool) Outcome {
	switch {
	case failure.Reason == ReasonCancelled && !committed:
		return OutcomeCancelled
	case slices.Contains(b.SkipReasons, failure.Reason) && !committed:
		return OutcomeSkipped
	}
	return OutcomeFailed
}
