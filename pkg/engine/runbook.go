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

// Gate is a read-only check. A step acts only if all of its gates pass in the same pass.
type Gate struct {
	Name  string      // one CamelCase word, unique among the gates of the step
	Check UpgradeStep `json:"-"`
}

// KeepAlive renews something, such as a lease, while a step waits. It never blocks the step. Its errors are
// appended to the message of the step.
type KeepAlive struct {
	Name  string      // one CamelCase word, unique among the keep-alives of the step
	Renew UpgradeStep `json:"-"`
}

// Milestone marks a step that notifications and the status refer to.
type Milestone = history.Milestone

// The milestones of an upgrade.
const (
	MilestoneStarted              Milestone = "Started"              // the upgrade has begun
	MilestoneDelayed              Milestone = "Delayed"              // it takes long to commence
	MilestoneCommenced            Milestone = "Commenced"            // the point of no return is passed
	MilestoneControlPlaneUpgraded Milestone = "ControlPlaneUpgraded" // the control plane is at the version
	MilestoneWorkersUpgraded      Milestone = "WorkersUpgraded"      // all worker nodes are at the version
	MilestoneCompleted            Milestone = "Completed"            // the upgrade is complete
	MilestoneFailed               Milestone = "Failed"               // the upgrade failed; recorded as Cancelled or Skipped if it did not fail
	MilestoneCancelled            Milestone = "Cancelled"            // the upgrade was cancelled before its commit
	MilestoneSkipped              Milestone = "Skipped"              // the upgrade was skipped, see Runbook.SkipReasons
)

// Commit observes and withdraws the request of the committing step. Do of the step makes it.
type Commit struct {
	// After names a step. An update of the cluster to the target cannot belong to this attempt before that step
	// is done. It may be empty.
	After string
	// Observe reads the state of the request, from the cache, or from the API server if Run.Confirm is set. If
	// the Result is not zero, it is the answer of the step: neither the gates nor Do are called.
	Observe func(context.Context, Run) (Observed, Result, error) `json:"-"`
	// Withdraw withdraws the request if the cluster has not begun the update, and makes sure that no request in
	// flight takes effect later. It is idempotent. Requests are saved before they are made, see Run.Requested.
	// If Withdraw is nil, a request stays.
	Withdraw UpgradeStep `json:"-"`
	// Requested is the answer of Do right after the request, if it is known. It is saved with the request if a gate waited
	// for the same reason: its message would stay otherwise. It may be zero.
	Requested Result `json:"-"`
}

// Step is a line of a runbook.
type Step struct {
	// Name is the type of the condition: what holds once the step is done. It is unique in the runbook.
	Name string
	// FormerNames are the names of the step in earlier releases.
	FormerNames []string
	// Doc is one sentence for people.
	Doc string
	// Gates must all pass before Do is called, in the same pass. The first gate that does not pass, or that
	// returns an error, answers for the step.
	Gates []Gate
	// Do does the step, or reports why it cannot do it yet.
	Do UpgradeStep `json:"-"`
	// KeepAlive is renewed while the step waits or is held.
	KeepAlive []KeepAlive
	// PreCheck reports what the step would wait for if the upgrade began now. It does not change the cluster,
	// but it may request an analysis. It is nil if this cannot be determined ahead of time.
	PreCheck UpgradeStep `json:"-"`
	// Reached reports whether the condition that the step is named for already holds for this target. It is
	// read-only. It decides for a step whose Do may no longer be called, except the committing one. If nil, the
	// condition does not hold.
	Reached func(context.Context) (bool, error) `json:"-"`
	// Items returns the items of a step whose Do may no longer be called. It is read-only. If nil, the recorded
	// items stay.
	Items func(context.Context) ([]history.StepItem, error) `json:"-"`
	// Commit marks the point of no return. At most one step of a runbook has it.
	Commit *Commit
	// Skip is the answer of a step that has nothing to do in this upgrade. The step is not called, and is saved
	// with the next change. If zero, the step is called.
	Skip Result
	// Repeatable marks a step that may be called again, together with the step before it, if the process
	// crashes during its first call. Its start is saved with its first answer, in one write instead of two.
	Repeatable bool
	// Milestone marks the step for notifications and the status. It may be empty.
	Milestone Milestone
	// SlowAfter is how long the step may go without progress before it is reported as slow, or 0 for no limit. A
	// change of the answer is progress. Waits for one of PauseReasons do not count.
	SlowAfter time.Duration
	// FailAfter is how long the step may take before it fails, or 0 for no limit.
	FailAfter time.Duration
	// FailBy is when the step fails, or zero for never.
	FailBy time.Time
	// FailReason is the reason of the failure, by default TimedOut. A step that misses the window fails with
	// this reason only if it was its last reason to wait.
	FailReason string
}

// Runbook is a table: an ordered list of steps, and of the steps that replace the rest once the upgrade has
// failed. Its JSON omits the functions.
type Runbook struct {
	// Admission must pass before the first step, or before the step of Commit.After. Its gates are read-only,
	// are evaluated in each pass until then, and are not recorded. A gate fails if the spec cannot be carried
	// out; the spec can be corrected until the window closes. With ReasonAlreadyAtVersion, there is nothing to
	// do.
	Admission []Gate `json:",omitempty"`
	Steps     []Step
	// Cleanup runs instead of the remaining steps after a step has failed.
	Cleanup []Step
	// Finally runs after the last step or after the cleanup. The outcome is recorded before.
	Finally []Step
	// MissedAs is the reason of an upgrade that did not commit in its window, by default WindowMissed.
	MissedAs string
	// SkipReasons are the reasons that skip an upgrade before the commit, instead of failing it.
	SkipReasons []string
	// PauseReasons are the reasons of a waiting step that pause the upgrade: it can only wait for a time or a
	// user.
	PauseReasons []string
	// Abandon removes what would be orphaned if the controller stopped managing an unfinished upgrade. It does
	// not wait, and may be nil. The engine never calls it.
	Abandon func(context.Context) error `json:"-"`

	problems []error // of InsertBefore and InsertAfter
}

// InsertBefore returns the runbook with a step inserted before the named one. If the named step does not exist,
// Validate returns an error.
func (b Runbook) InsertBefore(name string, step Step) Runbook { return b.insert(name, 0, step) }

// InsertAfter returns the runbook with a step inserted after the named one. If the named step does not exist,
// Validate returns an error.
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

// WithCommitGates returns the runbook with gates added before the gates of the committing step.
func (b Runbook) WithCommitGates(gates ...Gate) Runbook {
	b.Steps = slices.Clone(b.Steps)
	if commit := b.CommitStep(); commit != nil {
		commit.Gates = slices.Concat(gates, commit.Gates)
	}
	return b
}

var namePattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Validate returns an error that lists all problems of the table.
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

// validateGates returns the problems of gates, or of other pairs of a name and a function.
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

// validateNames adds the names of the step to the names in use, and returns their problems.
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

// allSteps returns the steps, the cleanup steps, and the final steps, each with its index.
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

// indexOf returns the index of a step in allSteps, or -1.
func (b Runbook) indexOf(name string) int {
	for i, step := range b.allSteps() {
		if step.Name == name {
			return i
		}
	}
	return -1
}

// commitIndex returns the index of the committing step, or the number of steps.
func (b Runbook) commitIndex() int {
	for i := range b.Steps {
		if b.Steps[i].Commit != nil {
			return i
		}
	}
	return len(b.Steps)
}

// CommitStep returns the committing step, or nil if there is none.
func (b Runbook) CommitStep() *Step {
	if i := b.commitIndex(); i < len(b.Steps) {
		return &b.Steps[i]
	}
	return nil
}

// outcome returns the outcome of an upgrade that failed before or after the commit.
func (b Runbook) outcome(failure *history.StepCondition, committed bool) Outcome {
	switch {
	case failure.Reason == ReasonCancelled && !committed:
		return OutcomeCancelled
	case slices.Contains(b.SkipReasons, failure.Reason) && !committed:
		return OutcomeSkipped
	}
	return OutcomeFailed
}
