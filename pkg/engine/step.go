// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// UpgradeStep does one piece of an upgrade, or says why it cannot yet. It is
// idempotent: it looks before it acts, and may be called again at any time. An
// error means that it could not find out; it is retried with growing delays.
type UpgradeStep func(ctx context.Context, run Run) (Result, error)

// Run is what the engine tells a step.
type Run struct {
	Started time.Time // when the first step of the upgrade began
	Since   time.Time // when this step was first tried
	Now     time.Time // what time it is
	// Failure is the step because of which the upgrade was given up; nil unless it was.
	Failure *history.StepCondition
}

// Retry is when a step that is tried for so long is to be tried again: each time
// after half as long as it has been tried for. It is false once that is over.
func (r Run) Retry(timeout time.Duration) (after time.Duration, ok bool) {
	elapsed := r.Now.Sub(r.Since)
	return min(max(elapsed/2, minRetry), timeout-elapsed), elapsed < timeout
}

// Result is what a step answers: one of Done, Wait, WaitFor, Skip and Fail.
// The zero Result means "not yet".
type Result struct {
	outcome outcome
	after   time.Duration
	reason  string
	message string
}

type outcome int

const (
	notYet outcome = iota
	done
	skipped
	failed
)

const (
	// ReasonStarted is the reason of a step that has not answered yet.
	ReasonStarted = "Started"
	// ReasonCancelled is the reason of a step that failed because the upgrade
	// was called off.
	ReasonCancelled = "Cancelled"
	// ReasonDone is the reason of every step that is done, so that it can be
	// told from one that was skipped.
	ReasonDone = "Done"
)

// Done says that the step is over: what it is named for holds.
func Done(format string, args ...any) Result {
	return Result{outcome: done, reason: ReasonDone, message: fmt.Sprintf(format, args...)}
}

// Wait says that the step is not over yet, and why. It is tried again when the
// cluster changes, and every five minutes.
func Wait(reason, format string, args ...any) Result {
	return Result{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitFor is Wait with a time after which the step wants to be tried again
// although nothing may have changed: a second at least, also if that time is past.
func WaitFor(after time.Duration, reason, format string, args ...any) Result {
	return Result{after: max(after, minRetry), reason: reason, message: fmt.Sprintf(format, args...)}
}

// Skip says that the step does not apply, or is left out, and why. The runbook goes on.
func Skip(reason, format string, args ...any) Result {
	return Result{outcome: skipped, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Fail says that the step cannot succeed any more, and why. The upgrade is given up.
func Fail(reason, format string, args ...any) Result {
	return Result{outcome: failed, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Passed says whether the step is no longer in the way: it is done or skipped.
func (r Result) Passed() bool { return r.outcome == done || r.outcome == skipped }

// Failed says whether the upgrade is to be given up.
func (r Result) Failed() bool { return r.outcome == failed }

// Reason is the reason that was given, in one CamelCase word.
func (r Result) Reason() string { return r.reason }

// Message is what was said to people.
func (r Result) Message() string { return r.message }

// FromBool adapts the plain form of a step: true is done, false is not yet.
func FromBool(do func(ctx context.Context) (bool, error)) UpgradeStep {
	return func(ctx context.Context, _ Run) (Result, error) {
		ok, err := do(ctx)
		if err != nil || !ok {
			return Result{}, err
		}
		return Done(""), nil
	}
}
