// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// UpgradeStep does one piece of an upgrade, or reports why it cannot yet. It is idempotent: it
// looks before it acts and may be called again at any time. An error means that it could not
// determine the state; it is retried with growing delays.
type UpgradeStep func(ctx context.Context, run Run) (Result, error)

// Run is what the engine passes to a step.
type Run struct {
	Started time.Time // when the first step of the upgrade began
	Since   time.Time // when this step began
	Now     time.Time
	// Requested reports whether the record holds that Do of the committing step was called and not
	// undone since. It is recorded only if that step has Undo.
	Requested bool
	// Committed reports whether the record holds that the point of no return is passed.
	Committed bool
	// Failure is the step that failed; nil means that none did.
	Failure *history.StepCondition
	// Blocked reports to a keep-alive that the step may not act at present: it is held or past its
	// deadline.
	Blocked bool
	// Outcome is what became of the upgrade; empty while that is open.
	Outcome Outcome
}

// Result is the answer of a step: one of Done, Wait, WaitFor, WaitUntil, Skip, and Fail. The zero
// Result means "not yet".
type Result struct {
	outcome outcome
	after   time.Duration
	until   time.Time
	reason  string
	message string
	items   *[]history.StepItem // a pointer, so that results can be compared
	undone  bool
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
	// ReasonCancelled is the reason of a step that failed because the upgrade was cancelled.
	ReasonCancelled = "Cancelled"
	// ReasonDone is the reason of every step that is done. A skipped step has another one.
	ReasonDone = "Done"
	// ReasonAlreadyAtVersion is the reason of a step that failed because the cluster is at the version
	// already.
	ReasonAlreadyAtVersion = "AlreadyAtVersion"
	// ReasonNotDelivered is the reason of a step that was skipped because its notification could not
	// be delivered.
	ReasonNotDelivered = "NotDelivered"
)

// Done reports that the step is finished: what it is named for holds.
func Done(format string, args ...any) Result {
	return Result{outcome: done, reason: ReasonDone, message: fmt.Sprintf(format, args...)}
}

// Wait reports that the step is not finished yet, and why. It is called again when the cluster
// changes, and every five minutes.
func Wait(reason, format string, args ...any) Result {
	return Result{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitFor is Wait with a time after which the step is called again although nothing may have
// changed: at least a second.
func WaitFor(after time.Duration, reason, format string, args ...any) Result {
	return Result{after: max(after, minRetry), reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitUntil waits for a time and for nothing else. Nothing is saved meanwhile, and the step need
// not be called again before.
func WaitUntil(t time.Time, reason, format string, args ...any) Result {
	return Result{until: t, reason: reason, message: fmt.Sprintf(format, args...)}
}

// NoLaterThan returns a result with which a waiting step is called again after that time at the
// latest; 0 changes nothing.
func (r Result) NoLaterThan(after time.Duration) Result {
	if after > 0 {
		r.after = minNonZero(r.after, max(after, minRetry))
	}
	return r
}

// Undone is Done for a keep-alive that has taken back what Do of the committing step did. The record
// then no longer holds that Do was called; the step may call it again.
func Undone(format string, args ...any) Result {
	result := Done(format, args...)
	result.undone = true
	return result
}

// WithoutEffect marks the result of a call of Do of the committing step that has changed nothing, for
// example because of a conflict. If no call before may have acted, the record does not hold that one
// has: what another client does at the same moment is not undone.
func (r Result) WithoutEffect() Result {
	r.undone = true
	return r
}

// Skip reports that the step does not apply, or is left out, and why. The runbook continues.
func Skip(reason, format string, args ...any) Result {
	return Result{outcome: skipped, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Fail reports that the step cannot succeed any more, and why. The upgrade fails.
func Fail(reason, format string, args ...any) Result {
	return Result{outcome: failed, reason: reason, message: fmt.Sprintf(format, args...)}
}

// The bounds of the items of a step.
const (
	maxItems       = 64
	maxItemName    = 253
	maxItemStatus  = 64
	maxItemMessage = 256
)

// WithItems returns the result with named sub-results of the step. They replace those that are
// recorded, which a result without items keeps. Names are unique: of several items of one name the
// first counts. Items without a name or status, and those beyond 64, are dropped.
func (r Result) WithItems(items ...history.StepItem) Result {
	kept := make([]history.StepItem, 0, min(len(items), maxItems))
	names := make(map[string]bool, len(kept))
	for _, item := range items {
		item.Name, item.Status = limit(item.Name, maxItemName), limit(item.Status, maxItemStatus)
		if item.Name == "" || item.Status == "" || names[item.Name] || len(kept) == maxItems {
			continue
		}
		names[item.Name] = true
		item.Message = limit(item.Message, maxItemMessage)
		kept = append(kept, item)
	}
	r.items = &kept
	return r
}

// Passed reports whether the step is no longer in the way: it is done or skipped.
func (r Result) Passed() bool { return r.outcome == done || r.outcome == skipped }

// Failed reports whether the upgrade fails.
func (r Result) Failed() bool { return r.outcome == failed }

// After returns the time after which a waiting step is called again although nothing may have changed;
// 0 means that it requests none.
func (r Result) After() time.Duration { return r.after }

// IsZero reports whether this is the zero Result.
func (r Result) IsZero() bool { return r == Result{} }

// Reason returns the reason, one CamelCase word.
func (r Result) Reason() string { return r.reason }

// Message returns the text for people.
func (r Result) Message() string { return r.message }

// Items returns the named sub-results; nil means that the step has none.
func (r Result) Items() []history.StepItem {
	if r.items == nil {
		return nil
	}
	return *r.items
}

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
