// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// keepAliveTimeout bounds one renewal. It does not depend on how long the step takes.
	keepAliveTimeout = 30 * time.Second
	// keepAliveRetry is when a failed keep-alive is renewed again, before what it keeps alive is likely to
	// lapse.
	keepAliveRetry = time.Minute
)

// call calls the step, unless something blocks it, and renews its keep-alives if it waits.
func (p *pass) call(ctx context.Context, step Step, now time.Time) (Result, error) {
	run := p.newRun(step, now)
	result, err := p.answer(ctx, step, run)
	if err == nil && p.saveErr == nil && result.Failed() {
		result, err = p.takeBack(ctx, step, result, run)
	}
	if p.saveErr != nil || err == nil && result.outcome != notYet {
		return result, err
	}
	run.Blocked = p.blocked(step, *p.condition(step.Name), p.engine.Clock.Now()) != nil
	return p.renew(ctx, step, run, result, err)
}

// timeoutClock is a clock that also measures timeouts: the clock of a simulation.
type timeoutClock interface {
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// WithTimeout is context.WithTimeout by a clock, because the deadlines of a simulation must not depend on how
// fast the machine is.
func WithTimeout(ctx context.Context, by clock.PassiveClock, d time.Duration) (context.Context, context.CancelFunc) {
	if c, ok := by.(timeoutClock); ok {
		return c.WithTimeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}

func (p *pass) newRun(step Step, now time.Time) Run {
	c := *p.condition(step.Name)
	run := Run{
		Started: text.TimeOf(p.record.StartTime), Since: text.TimeOf(c.StartTime), Now: now,
		Progress:  Progress{c.Fingerprint, later(text.TimeOf(c.StartTime), text.TimeOf(c.ProgressTime))},
		Requested: p.record.RequestTime != nil, RequestTime: text.TimeOf(p.record.RequestTime), RequestedImage: p.record.RequestedImage, Committed: committed(p.book, p.record.Conditions), Failure: failure(p.book, p.record.Conditions),
	}
	if p.engine.Renew != nil {
		run.Renew = p.renewRequest
	}
	if isInWindow(p.book, p.record.Conditions, step) {
		run.CommitBy = p.constraints.CommitBy
	}
	switch {
	case run.Failure != nil:
		run.Outcome = p.book.outcome(run.Failure, run.Committed)
	case p.book.indexOf(step.Name) >= len(p.book.Steps):
		run.Outcome = OutcomeUpgraded
	}
	return run
}

// answer asks the step for its answer. The context of a call ends at the deadline of the step, so a slow call
// cannot act after it.
func (p *pass) answer(ctx context.Context, step Step, run Run) (Result, error) {
	c := p.condition(step.Name)
	if b := p.blocked(step, *c, run.Now); b != nil {
		return p.whileBlocked(ctx, step, *b, run)
	}
	timeout := stepTimeout
	if due := p.deadline(step, *c); !due.IsZero() {
		timeout = min(timeout, due.Sub(run.Now))
	}
	callCtx, cancel := WithTimeout(ctx, p.engine.Clock, timeout)
	defer cancel()
	next := act
	if step.Commit != nil {
		var result Result
		var err error
		if next, result, err = p.commit(callCtx, step, run); err != nil || !result.IsZero() {
			return result, err
		}
	}
	result, err := firstClosed(callCtx, step.Gates, run)
	if err != nil || !result.IsZero() {
		return result, err
	}
	if b := p.blocked(step, *c, p.engine.Clock.Now()); b != nil { // the gates took long
		return p.whileBlocked(ctx, step, *b, run)
	}
	if next == wait {
		return Wait(reasonWaiting, "another client's update is in the way"), nil
	}
	if step.Commit != nil && step.Commit.Withdraw != nil && p.record.RequestTime == nil {
		if rest := p.engine.untilRequest(); rest > 0 {
			return p.shownFor(step, rest), nil
		}
		now := p.now()
		p.record.RequestTime, run.RequestTime, p.urgent = &now, now.Time, true
		if step.Commit.Requested.reason == c.Reason { // what the gates waited for is over
			c.Message = step.Commit.Requested.message
		}
		if p.saveErr = p.persist(ctx); p.saveErr != nil {
			return Result{}, nil
		}
	}
	result, err = step.Do(callCtx, run)
	if err == nil && result.undone {
		p.forgetRequest()
	}
	return result, err
}

// maxImage bounds the image in a record, in bytes. A longer one is not recorded.
const maxImage = 512

// renewRequest is Run.Renew.
func (p *pass) renewRequest(ctx context.Context, image string) error {
	noted := &image
	if len(image) > maxImage {
		noted = nil
	}
	if err := p.engine.Renew(ctx, noted); err != nil {
		return err
	}
	p.record.RequestedImage = noted
	return nil
}

// sameImage reports whether two images that may not be recorded are the same.
func sameImage(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// forgetRequest records that the request of the committing step was withdrawn.
func (p *pass) forgetRequest() { p.record.RequestTime, p.record.RequestedImage = nil, nil }

// untilRequest returns for how long the committing step must neither make nor withdraw a request.
func (e *Engine) untilRequest() time.Duration {
	since := e.Clock.Now().Sub(e.UnrequestedAt)
	if e.UnrequestedAt.IsZero() || since < 0 { // a clock that has jumped back
		return 0
	}
	return max(minRetry-since, 0)
}

// commit returns what the committing step does next. If the update has begun, or the request is waiting, there
// is nothing to do, and commit returns the answer of the step.
func (p *pass) commit(ctx context.Context, step Step, run Run) (reaction, Result, error) {
	phase, answer, err := p.book.phase(ctx, p.engine.Clock, p.record, run)
	next := reactions[phase][unhindered]
	switch {
	case err != nil:
		return ask, answer, err
	case next == adopt && !answer.Passed():
		return next, Done("holds already"), nil
	case next != takeBack:
		return next, answer, nil
	}
	undone, answer, err := p.withdraw(ctx, step, run)
	switch {
	case err != nil || !answer.IsZero():
		return ask, answer, err
	case !undone.Passed():
		return ask, p.shownFor(step, undone.after), nil
	}
	p.forgetRequest()
	return wait, Result{}, nil
}

// shownFor returns the last recorded answer of a step that does nothing for a while.
func (p *pass) shownFor(step Step, after time.Duration) Result {
	last := LastAnswer(*p.condition(step.Name))
	return Result{after: max(after, minRetry), reason: last.Reason, message: last.Message}
}

// firstClosed returns the answer of the first gate that does not pass, or zero if all gates pass.
func firstClosed(ctx context.Context, gates []Gate, run Run) (Result, error) {
	for _, gate := range gates {
		result, err := gate.Check(ctx, run)
		switch {
		case err != nil:
			return Result{after: result.after}, err
		case result.IsZero():
			return Wait(reasonWaiting, "gate %s does not pass", gate.Name), nil
		case !result.Passed():
			return result, nil
		}
	}
	return Result{}, nil
}

// blocker explains why a step may not act.
type blocker struct {
	result Result
	cause  string // the message of the result without what the step was waiting for
	is     situation
}

// blocked returns why the step may not act at that time, or nil if it may.
func (p *pass) blocked(step Step, c history.StepCondition, now time.Time) *blocker {
	pending := beforeCommit(p.book, p.record.Conditions, step)
	constraints := p.constraints
	switch {
	case constraints.Cancel != "" && isCancellable(p.book, p.record.Conditions, step):
		return &blocker{result: Fail(ReasonCancelled, "%s", constraints.Cancel), cause: constraints.Cancel, is: cancelled}
	case constraints.IsExpired(now) && isInWindow(p.book, p.record.Conditions, step):
		reason := cmp.Or(p.book.MissedAs, reasonWindowMissed)
		if last := LastAnswer(c); step.FailReason != "" && last.Reason == step.FailReason {
			reason = step.FailReason
		}
		return missed(c, reason, "not commenced by "+text.FormatTime(constraints.CommitBy)+", when the window closed")
	case step.FailAfter > 0 && !now.Before(text.TimeOf(c.StartTime).Add(step.FailAfter)):
		return missed(c, cmp.Or(step.FailReason, reasonTimedOut), fmt.Sprintf("not completed within %s", step.FailAfter))
	case !step.FailBy.IsZero() && !now.Before(step.FailBy):
		return missed(c, cmp.Or(step.FailReason, reasonTimedOut), "not completed by "+text.FormatTime(step.FailBy))
	case pending && constraints.Hold != "":
		return &blocker{result: Wait(ReasonPaused, "%s", constraints.Hold), is: held}
	}
	return nil
}

// missed returns the failure of a step that reached its deadline. It includes the last recorded reason of the wait and
// the time of that record, because waits are not recorded on every call.
func missed(c history.StepCondition, reason, cause string) *blocker {
	message := cause
	if c.Reason != ReasonStarted && c.Message != "" {
		message += lastSeen("at", c.LastProbeTime) + c.Message
	}
	return &blocker{result: Fail(reason, "%s", message), cause: cause, is: expired}
}

// whileBlocked answers for a step that may not act. The step is done if its condition already holds, and passed
// if the upgrade is committed. Anything else, including an error, ends the wait. After the commit, a gate that
// fails comes first.
func (p *pass) whileBlocked(ctx context.Context, step Step, b blocker, run Run) (Result, error) {
	if beforeCommit(p.book, p.record.Conditions, step) {
		phase, err := p.book.ask(ctx, p.engine.Clock, p.record, b.is != held) // a hold ends nothing
		switch next := reactions[phase][b.is]; {
		case next == ask: // it is asked without end
			return Result{}, err
		case next == adopt && step.Commit != nil:
			return step.withItems(ctx, p.engine.Clock, Done("holds already"))
		case next == adopt:
			return p.adopt(ctx, step)
		case b.is == held && next == takeBack:
			return p.undo(ctx, step, b.result, run)
		case b.is == held:
			return b.result, nil
		case step.Commit != nil: // call takes back
			return step.withItems(ctx, p.engine.Clock, b.result)
		}
	}
	switch {
	case b.is != expired:
	case p.book.isCleanup(step.Name):
		switch result, err := p.tryLast(ctx, step, run); {
		case err != nil:
			b.cause = joinMessages(b.cause, err.Error())
			b.result.message = b.cause
		case result.outcome != notYet:
			return result, nil
		}
	case run.Committed && run.Outcome == "": // another update may have replaced this one while no process ran
		if failed, err := p.book.FailedAfterCommit(ctx, p.engine.Clock); err == nil && failed.Failed() {
			return step.withItems(ctx, p.engine.Clock, failed)
		}
	}
	switch reached, err := step.reached(ctx, p.engine.Clock); {
	case err != nil:
		b.result.message = joinMessages(b.cause, couldNotBeDetermined(err))
	case reached:
		b.result = Done("holds already")
	}
	return step.withItems(ctx, p.engine.Clock, b.result)
}

// tryLast calls a step of the cleanup once more at its deadline or later: a deadline bounds waiting, never trying.
func (p *pass) tryLast(ctx context.Context, step Step, run Run) (Result, error) {
	ctx, cancel := WithTimeout(ctx, p.engine.Clock, stepTimeout)
	defer cancel()
	return step.Do(ctx, run)
}

// couldNotBeDetermined is the message about a wait that has ended although its state is unknown.
func couldNotBeDetermined(err error) string { return "CouldNotBeDetermined: " + err.Error() }

// undo withdraws the request of the committing step while the upgrade is held. If the cluster has begun the
// update by then, the attempt adopts it.
func (p *pass) undo(ctx context.Context, step Step, held Result, run Run) (Result, error) {
	if !p.canUndo() {
		return held, nil
	}
	undone, answer, err := p.withdraw(ctx, step, run)
	switch {
	case err != nil || !answer.IsZero():
		return answer, err
	case undone.Passed():
		p.forgetRequest()
	case undone.reason != "":
		held.reason = undone.reason
	}
	held.after = undone.after
	held.message = joinMessages(held.message, undone.message)
	return held, nil
}

// takeBack withdraws the request of the committing step before an upgrade fails. If the cluster begins the
// update in between, the attempt adopts it: an upgrade must not be recorded as failed while the cluster is
// being upgraded. The record keeps the request, because the cleanup withdraws it once more.
func (p *pass) takeBack(ctx context.Context, step Step, failed Result, run Run) (Result, error) {
	if !p.canUndo() || !beforeCommit(p.book, p.record.Conditions, step) {
		return failed, nil
	}
	undone, answer, err := p.withdraw(ctx, step, run)
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("withdrawing before the upgrade fails (%s): %w", failed.reason, err)
	case !answer.IsZero():
		return answer, nil
	case !undone.Passed(): // until then, the step shows what it showed before
		return p.shownFor(step, undone.after), nil
	}
	if undone.outcome == done {
		failed.message = joinMessages(failed.message, undone.message)
	}
	return failed, nil
}

// canUndo reports whether the record shows a request that can be withdrawn.
func (p *pass) canUndo() bool {
	commit := p.book.CommitStep()
	return commit != nil && commit.Commit.Withdraw != nil && p.record.RequestTime != nil
}

// withdraw takes back the request of the committing step, and confirms that the cluster has not begun the
// update: a request in flight may begin it until then. If it has begun, withdraw returns the answer of the
// current step. That may be an earlier step if the record was forged or recovered. It does nothing within a
// second of the last withdrawal: another process with another clock has repeated the request, and the two would
// repeat and withdraw it in turns.
func (p *pass) withdraw(ctx context.Context, current Step, run Run) (undone, answer Result, err error) {
	if rest := p.engine.untilRequest(); rest > 0 {
		return Result{after: rest}, Result{}, nil
	}
	undoCtx, cancel := WithTimeout(ctx, p.engine.Clock, stepTimeout)
	defer cancel()
	if undone, err = p.book.CommitStep().Commit.Withdraw(undoCtx, run); err != nil || !undone.Passed() {
		return undone, Result{}, err
	}
	switch phase, err := p.book.ask(ctx, p.engine.Clock, p.record, true); {
	case err != nil:
		return Result{}, Result{}, err
	case phase == PhaseCommitted && current.Commit != nil:
		return undone, Done("holds already"), nil
	case phase == PhaseCommitted:
		answer, err = p.adopt(ctx, current)
		return undone, answer, err
	}
	return undone, Result{}, nil
}

// renew renews the keep-alives of a waiting step. It returns the answer of the step with the errors of the
// keep-alives.
func (p *pass) renew(ctx context.Context, step Step, run Run, result Result, err error) (Result, error) {
	for _, keepAlive := range step.KeepAlive {
		run.Requested = p.record.RequestTime != nil
		renewed, renewErr := keepAlive.renew(ctx, p.engine.Clock, run)
		if renewErr == nil && renewed.undone {
			p.forgetRequest()
		}
		result.after = minNonZero(result.after, renewed.after)
		if renewErr == nil && renewed.Failed() {
			renewErr = errors.New(renewed.message)
		}
		switch {
		case renewErr == nil:
		case err != nil:
			err = fmt.Errorf("%w; also: %w", err, renewErr)
		default:
			result.after = minNonZero(result.after, keepAliveRetry)
			result.reason = cmp.Or(result.reason, reasonWaiting)
			result.message = joinMessages(result.message, "also: "+renewErr.Error())
		}
	}
	return result, err
}

func (k KeepAlive) renew(ctx context.Context, by clock.PassiveClock, run Run) (Result, error) {
	ctx, cancel := WithTimeout(ctx, by, keepAliveTimeout)
	defer cancel()
	return k.Renew(ctx, run)
}

func joinMessages(message, more string) string {
	if message == "" || more == "" {
		return message + more
	}
	return message + "; " + more
}

func (s Step) reached(ctx context.Context, by clock.PassiveClock) (bool, error) {
	if s.Reached == nil {
		return false, nil
	}
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	return s.Reached(ctx)
}

// withItems adds the items of a step whose Do may no longer be called to its answer.
func (s Step) withItems(ctx context.Context, by clock.PassiveClock, result Result) (Result, error) {
	if s.Items == nil {
		return result, nil
	}
	ctx, cancel := WithTimeout(ctx, by, stepTimeout)
	defer cancel()
	items, err := s.Items(ctx)
	if err != nil {
		return Result{}, err
	}
	return result.WithItems(items...), nil
}
