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
	Name  string      // one CamelCase word, unique among the gates of the step
	Check UpgradeStep `json:"-"`
}

// KeepAlive renews what must stay alive while a step waits, such as a lease. It never blocks the
// step: its errors are appended to the step's message.
type KeepAlive struct {
	Name  string      // one CamelCase word, unique among the keep-alives of the step
	Renew UpgradeStep `json:"-"`
}

// Milestone says what a step means to notifications and to the status.
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

// Commit is how the committing step learns what became of its request, and how it withdraws that. Do of the
// step makes the request.
type Commit struct {
	// After names the step from whose end on the update of the cluster to the target can be the update of this
	// attempt; empty means from the start.
	After string
	// Observe reads what became of the request, from the cache, or from the API server if Run.Confirm is set. A
	// Result other than the zero one answers for the step: neither the gates nor Do are called.
	Observe func(context.Context, Run) (Observed, Result, error) `json:"-"`
	// Withdraw takes back the request if the cluster has not begun, and makes sure that none which is on its way
	// is served later. It is idempotent. That a request is made is saved before, see Run.Requested. Nil means
	// that a request stays.
	Withdraw UpgradeStep `json:"-"`
}

// Step is one line of a runbook.
type Step struct {
	// Name is the condition's type: what holds once the step is done. It is unique in the runbook.
	Name string
	// FormerNames are the names that the step had in earlier releases.
	FormerNames []string
	// Doc is one sentence for people.
	Doc string
	// Gates must all pass before Do is called, in the same pass. The first that does not pass, or
	// that returns an error, answers for the step.
	Gates []Gate
	// Do does the step, or reports why it cannot yet.
	Do UpgradeStep `json:"-"`
	// KeepAlive is renewed while the step waits, also while it is held.
	KeepAlive []KeepAlive
	// PreCheck reports what the step would wait for if the upgrade began now. It changes nothing of the
	// cluster; it may request an analysis. Nil means that this cannot be determined ahead of time.
	PreCheck UpgradeStep `json:"-"`
	// Reached is read-only: it reports whether what the step is named for holds already, for this
	// target. It decides where Do may no longer be called, except for the committing step. Nil means that it
	// does not hold.
	Reached func(context.Context) (bool, error) `json:"-"`
	// Items is read-only: it returns the items of the step as they are when Do may no longer be called.
	// Nil means that those recorded stay.
	Items func(context.Context) ([]history.StepItem, error) `json:"-"`
	// Commit marks the point of no return. One step of a runbook has it at most.
	Commit *Commit
	// Skip answers for a step that has nothing to do in this upgrade, which is known from the start. The
	// step is not called, and saved with what follows. The zero Result means that it is called.
	Skip Result
	// Repeatable marks a step whose first call may be lost in a crash together with the result of the
	// step before: both are then called again. That the step began is saved with its first answer, by one
	// write instead of two.
	Repeatable bool
	// Milestone says what the step means to notifications and to the status; empty means nothing.
	Milestone Milestone
	// SlowAfter is the time without progress after which the step is reported as stalled; 0 means never.
	// A change of its answer is progress, and a wait for one of PauseReasons does not count.
	SlowAfter time.Duration
	// FailAfter is the time after which the step fails; 0 means never.
	FailAfter time.Duration
	// FailBy is the time at which the step fails; zero means never.
	FailBy time.Time
	// FailReason says what failing this step means; empty means TimedOut. A step that misses the window fails for this
	// reason only if it was waiting for this reason.
	FailReason string
}

// Runbook is a table: an ordered list of steps, and what is done instead of the rest of them once
// the upgrade has failed. Its JSON has everything but the functions.
type Runbook struct {
	// Admission must pass before the first step, or before the step of Commit.After. Its gates are read-only, evaluated in
	// each pass until then, and not recorded. One that fails says why the spec cannot be carried out; it can be corrected
	// until the window closes. ReasonAlreadyAtVersion says that there is nothing to do.
	Admission []Gate `json:",omitempty"`
	Steps     []Step
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
	// Abandon removes what would be orphaned if the controller stopped managing an unfinished upgrade. It does not
	// wait. The engine never calls it. Nil means that nothing needs to be removed.
	Abandon func(context.Context) error `json:"-"`

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
	if commit := b.CommitStep(); commit != nil {
		commit.Gates = slices.Concat(gates, commit.Gates)
	}
	return b
}

var namePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Validate returns an error that lists everything that is wrong with the table.
func (b Runbook) Validate() error {
	errs := append(slices.Clone(b.problems), validateGates("the admission", "gate", b.Admission)...)
	names := map[string]bool{}
	commits := 0
	for i, step := range b.allSteps() {
		errs = append(errs, step.validateNames(names)...)
		errs = append(errs, step.validate()...)
		if step.Commit == nil {
			continue
		}
		commits++
		after := b.indexOf(step.Commit.After)
		switch {
		case i >= len(b.Steps):
			errs = append(errs, fmt.Errorf("step %s commits, but is not one of the steps before the cleanup", step.Name))
		case step.Commit.Observe == nil:
			errs = append(errs, fmt.Errorf("step %s commits, but has no Observe", step.Name))
		case step.Commit.After != "" && (after < 0 || after >= i):
			errs = append(errs, fmt.Errorf("step %s commits after step %s, which does not precede it", step.Name, step.Commit.After))
		}
	}
	if commits > 1 {
		errs = append(errs, fmt.Errorf("%d steps commit, at most one may", commits))
	}
	if len(b.Steps) == 0 {
		errs = append(errs, errors.New("there are no steps"))
	}
	for _, reason := range slices.Concat([]string{b.MissedAs}, b.SkipReasons, b.PauseReasons) {
		if reason != "" && !namePattern.MatchString(reason) {
			errs = append(errs, fmt.Errorf("reason %q is not one CamelCase word", reason))
		}
	}
	return errors.Join(errs...)
}

// validateGates returns what is wrong with gates, or with what else has a name and a function.
func validateGates(of, kind string, gates []Gate) []error {
	var errs []error
	inUse := map[string]bool{}
	for _, gate := range gates {
		switch {
		case !namePattern.MatchString(gate.Name):
			errs = append(errs, fmt.Errorf("%s: %s name %q is not one CamelCase word of at most 64 letters and digits", of, kind, gate.Name))
		case inUse[gate.Name]:
			errs = append(errs, fmt.Errorf("%s: %s name %s is used twice", of, kind, gate.Name))
		case gate.Check == nil:
			errs = append(errs, fmt.Errorf("%s: %s %s does nothing", of, kind, gate.Name))
		}
		inUse[gate.Name] = true
	}
	return errs
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
	if !s.Skip.IsZero() && s.Skip.outcome != skipped {
		errs = append(errs, fmt.Errorf("step %s: Skip has another result than one of engine.Skip", s.Name))
	}
	if !s.Skip.IsZero() && s.Commit != nil {
		errs = append(errs, fmt.Errorf("step %s commits, but has Skip", s.Name))
	}
	if s.FailReason != "" && !namePattern.MatchString(s.FailReason) {
		errs = append(errs, fmt.Errorf("step %s: FailReason %q is not one CamelCase word", s.Name, s.FailReason))
	}
	var keepAlives []Gate
	for _, keepAlive := range s.KeepAlive {
		keepAlives = append(keepAlives, Gate{keepAlive.Name, keepAlive.Renew})
	}
	errs = append(errs, validateGates("step "+s.Name, "gate", s.Gates)...)
	return append(errs, validateGates("step "+s.Name, "keep-alive", keepAlives)...)
}

// allSteps returns the steps, the steps of the cleanup, and the final ones, each with its index.
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
		if b.Steps[i].Commit != nil {
			return i
		}
	}
	return len(b.Steps)
}

// CommitStep returns the step that commits; nil means that none does.
func (b Runbook) CommitStep() *Step {
	if i := b.commitIndex(); i < len(b.Steps) {
		return &b.Steps[i]
	}
	return nil
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
