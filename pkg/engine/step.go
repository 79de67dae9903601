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
// determine the state; it is retried with growing delays, or earlier if the result says when.
type UpgradeStep func(ctx context.Context, run Run) (Result, error)

// Run holds what the engine passes to a step.
type Run struct {
	Started time.Time // when the first step of the upgrade began
	Since   time.Time // when this step began
	Now     time.Time
	// CommitBy is when the window of a step up to the committing one closes; zero means never.
	CommitBy time.Time
	// Requested reports whether the record holds that Do of the committing step was called and not
	// withdrawn since. It is recorded only if that step has Commit.Withdraw.
	Requested bool
	// RequestedImage is the image that was requested, empty if the version alone was; nil means that the record does
	// not hold it.
	RequestedImage *string
	// Renew notes again that Do of the committing step acts, and the image that it requests. It is called between
	// the read on which the request of that step is conditional and the request; see Engine.Renew. Nil means that
	// nothing is noted.
	Renew func(ctx context.Context, image string) error
	// Confirm tells Commit.Observe that an attempt may end by its answer, which the API server must confirm.
	Confirm bool
	// Committed reports whether the record holds that the point of no return is passed.
	Committed bool
	// Failure is the step that failed; nil means that none did.
	Failure *history.StepCondition
	// Progress holds what the record says about the progress of the step.
	Progress Progress
	// Blocked reports to a keep-alive that the step may not act at present: it is held or past its
	// deadline.
	Blocked bool
	// Outcome says what became of the upgrade; empty while that is open.
	Outcome Outcome
}

// yieldBefore is how long before the end of the window optional steps yield to the others.
const yieldBefore = 10 * time.Minute

// YieldAt returns when a step that is optional stops waiting, so that the window is not missed because of
// it; zero means never.
func (r Run) YieldAt() time.Time {
	if r.CommitBy.IsZero() {
		return time.Time{}
	}
	return r.CommitBy.Add(-yieldBefore)
}

// Progress holds what a step that waits remembers, so that it can tell later whether what it waits for has changed.
type Progress struct {
	// Fingerprint identifies what the step waits for; empty means that nothing is remembered.
	Fingerprint string
	// Changed is when that last changed: at the start of the step at the earliest.
	Changed time.Time
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

	progress Progress
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
	// ReasonNoUpdate is the reason of a committing step that is skipped because the upgrade leads to no
	// version: the point of no return is not passed.
	ReasonNoUpdate = "NoUpdate"
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

// WaitUntil waits for a time and for nothing else. Nothing is saved during the wait, and the step need not be called
// again before.
func WaitUntil(t time.Time, reason, format string, args ...any) Result {
	return Result{until: t, reason: reason, message: fmt.Sprintf(format, args...)}
}

// WithProgress returns the result of a step that knows when what it waits for last changed. Without it, each
// change of the answer is progress.
func (r Result) WithProgress(p Progress) Result {
	r.progress = p
	return r
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

// WithoutEffect marks the result of a call of Do of the committing step that has changed nothing and that proves that
// no earlier call can still take effect; a conflict proves nothing. The record then no longer holds that one has acted:
// what another client does at the same moment is not undone.
func (r Result) WithoutEffect() Result {
	r.undone = true
	return r
}

// Skip reports that the step does not apply, or is left out, and why. The runbook continues.
func Skip(reason, format string, args ...any) Result {
	return Result{outcome: skipped, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Fail reports that the step can no longer succeed, and why. The upgrade fails.
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

// Plain returns a runbook of plain functions: each is called until it returns true, and then the next. It commits
// nothing: the window counts until the first function is done, a pause or a cancellation at any time, and its end says
// nothing about the ClusterVersion. The steps are named for the runbook and their number.
func Plain(name string, functions ...func(context.Context) (bool, error)) Runbook {
	var book Runbook
	for i, do := range functions {
		what := fmt.Sprintf("function %d of %d of %s", i+1, len(functions), name)
		book.Steps = append(book.Steps, Step{
			Name: fmt.Sprintf("%s%d", name, i+1), Doc: "Waits until " + what + " is done.",
			Do: func(ctx context.Context, _ Run) (Result, error) {
				switch done, err := do(ctx); {
				case err != nil:
					return Result{}, err
				case !done:
					return Wait(reasonWaiting, "%s is not done yet", what), nil
				}
				return Done("%s is done", what), nil
			},
		})
	}
	return book
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
