// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// UpgradeStep does a piece of an upgrade, or reports why it cannot do it yet. It is idempotent: it looks before
// it acts and may be called again at any time. It returns an error if it cannot determine the state. The call
// is then retried with growing delays, or earlier if the result says when.
type UpgradeStep func(ctx context.Context, run Run) (Result, error)

// Run is the input of a step.
type Run struct {
	Started time.Time // when the first step of the upgrade began
	Since   time.Time // when this step began
	Now     time.Time
	// CommitBy is the end of the window for a step up to the committing one, or zero if there is none.
	CommitBy time.Time
	// Requested reports whether Do of the committing step was called, according to the record, and not
	// withdrawn since. It is recorded only if that step has Commit.Withdraw.
	Requested bool
	// RequestTime is when the record has noted the request, which is before Do is called; zero if it has none.
	RequestTime time.Time
	// RequestedImage is the requested image, empty if only the version was requested, or nil if the record does
	// not show it.
	RequestedImage *string
	// Renew repeats the note that Do of the committing step makes a request, with its image. The step calls it
	// before the request, after the read that the request depends on; see Engine.Renew. It may be nil.
	Renew func(ctx context.Context, image string) error
	// Confirm tells Commit.Observe that its answer may end the attempt, so the API server must confirm it.
	Confirm bool
	// Committed reports whether the record is past the point of no return.
	Committed bool
	// Failure is the step that failed, or nil.
	Failure *history.StepCondition
	// Progress is the recorded progress of the step.
	Progress Progress
	// Blocked tells a keep-alive that the step may not act at present: it is held or past its deadline.
	Blocked bool
	// Outcome is the outcome of the upgrade, or empty until it is decided.
	Outcome Outcome
}

// yieldBefore is how long before the end of the window optional steps stop waiting.
const yieldBefore = 10 * time.Minute

// YieldAt returns when an optional step stops waiting so as not to miss the window, or zero if there is no
// window.
func (r Run) YieldAt() time.Time {
	if r.CommitBy.IsZero() {
		return time.Time{}
	}
	return r.CommitBy.Add(-yieldBefore)
}

// Progress lets a waiting step detect later whether there was a change.
type Progress struct {
	// Fingerprint identifies the state that the step waits to change. It may be empty.
	Fingerprint string
	// Changed is when that state last changed, at the earliest the start of the step.
	Changed time.Time
}

// Result is the answer of a step: one of Done, Wait, WaitFor, WaitUntil, Skip, and Fail. The zero Result is
// "not yet".
type Result struct {
	outcome outcome
	after   time.Duration
	until   time.Time
	reason  string
	message string
	items   *[]history.StepItem // a pointer makes results comparable
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
	// ReasonStarted is the reason of a step before its first answer.
	ReasonStarted = "Started"
	// ReasonCancelled is the reason of a step that failed because the upgrade was cancelled.
	ReasonCancelled = "Cancelled"
	// ReasonDone is the reason of all steps that are done, but not of skipped ones.
	ReasonDone = "Done"
	// ReasonAlreadyAtVersion is the reason of a step that failed because the cluster already has the version.
	ReasonAlreadyAtVersion = "AlreadyAtVersion"
	// ReasonNoUpdate is the reason of a committing step that skips because there is no version. The upgrade is
	// then not past the point of no return.
	ReasonNoUpdate = "NoUpdate"
	// ReasonNotDelivered is the reason of a step that was skipped because its notification could not be
	// delivered.
	ReasonNotDelivered = "NotDelivered"
)

// Done reports that the condition that the step is named for holds.
func Done(format string, args ...any) Result {
	return Result{outcome: done, reason: ReasonDone, message: fmt.Sprintf(format, args...)}
}

// Wait reports why the step is not finished. It is called again when the cluster changes, and every five
// minutes.
func Wait(reason, format string, args ...any) Result {
	return Result{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitFor is Wait for a step to be called again after a time, at least a second, even if nothing changes.
func WaitFor(after time.Duration, reason, format string, args ...any) Result {
	return Result{after: max(after, minRetry), reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitUntil waits for a time only. Nothing is saved during the wait, and the step need not be called before.
func WaitUntil(t time.Time, reason, format string, args ...any) Result {
	return Result{until: t, reason: reason, message: fmt.Sprintf(format, args...)}
}

// WithProgress returns the result of a step that knows its progress. Otherwise, each change of the answer is
// progress.
func (r Result) WithProgress(p Progress) Result {
	r.progress = p
	return r
}

// NoLaterThan bounds the time until a waiting step is called again. It ignores 0.
func (r Result) NoLaterThan(after time.Duration) Result {
	if after > 0 {
		r.after = minNonZero(r.after, max(after, minRetry))
	}
	return r
}

// Undone is Done for a keep-alive that has withdrawn the request of the committing step. The record no longer
// shows the request, and the step may repeat it.
func Undone(format string, args ...any) Result {
	result := Done(format, args...)
	result.undone = true
	return result
}

// WithoutEffect marks a result of Do of the committing step that has changed nothing, and that proves that no
// earlier call can still take effect. A conflict proves nothing. The record then no longer shows a request, so
// a request that another client makes at the same moment is not withdrawn.
func (r Result) WithoutEffect() Result {
	r.undone = true
	return r
}

// Skip reports why the step does not apply or is left out. The runbook continues.
func Skip(reason, format string, args ...any) Result {
	return Result{outcome: skipped, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Fail reports why the step can no longer succeed. The upgrade fails.
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

// WithItems returns the result with named sub-results of the step. They replace the recorded ones. A result
// without items keeps these. Of several items with the same name, the first counts. Items without a name or
// status, and items beyond 64, are dropped.
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

// Passed reports whether the step is done or skipped.
func (r Result) Passed() bool { return r.outcome == done || r.outcome == skipped }

// Failed reports whether the upgrade fails.
func (r Result) Failed() bool { return r.outcome == failed }

// After returns when a waiting step asks to be called again, or 0.
func (r Result) After() time.Duration { return r.after }

// IsZero reports whether this is the zero Result.
func (r Result) IsZero() bool { return r == Result{} }

// Reason returns the reason, one CamelCase word.
func (r Result) Reason() string { return r.reason }

// Message returns the text for people.
func (r Result) Message() string { return r.message }

// Items returns the named sub-results, or nil if there are none.
func (r Result) Items() []history.StepItem {
	if r.items == nil {
		return nil
	}
	return *r.items
}

// Plain returns a runbook of plain functions. Each function is called until it returns true, followed by the
// next. The runbook commits nothing: the window counts until the first function is done, a pause or a
// cancellation counts at any time, and the end does not depend on the ClusterVersion. Steps are named for the
// runbook and their number.
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

// FromBool adapts a plain function: true is done, false is not yet.
func FromBool(do func(ctx context.Context) (bool, error)) UpgradeStep {
	return func(ctx context.Context, _ Run) (Result, error) {
		ok, err := do(ctx)
		if err != nil || !ok {
			return Result{}, err
		}
		return Done(""), nil
	}
}
