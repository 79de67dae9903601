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
)

const (
	// keepAliveTimeout bounds one renewal. It has nothing to do with the time that the step takes.
	keepAliveTimeout = 30 * time.Second
	// keepAliveRetry is when a keep-alive that failed is renewed again: sooner than what it keeps
	// alive is likely to lapse.
	keepAliveRetry = time.Minute
)

// call calls the step, unless something blocks it, and renews its keep-alives if it waits.
func (p *pass) call(ctx context.Context, step Step, now time.Time) (Result, error) {
	run := p.newRun(*p.condition(step.Name), now)
	result, err := p.answer(ctx, step, run)
	if p.saveErr != nil || err == nil && result.outcome != notYet {
		return result, err
	}
	run.Blocked = p.blocked(step, *p.condition(step.Name), p.engine.Clock.Now()) != nil
	return p.renew(ctx, step, run, result, err)
}

// timeoutClock is a clock that measures timeouts, too: that of a simulation.
type timeoutClock interface {
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// WithTimeout is context.WithTimeout by a clock: the deadlines of a simulation must not depend on how
// fast the machine is.
func WithTimeout(ctx context.Context, by clock.PassiveClock, d time.Duration) (context.Context, context.CancelFunc) {
	if c, ok := by.(timeoutClock); ok {
		return c.WithTimeout(ctx, d)
	}
	return context.WithTimeout(ctx, d)
}

func (p *pass) newRun(c history.StepCondition, now time.Time) Run {
	run := Run{
		Started: timeOf(p.record.StartTime), Since: timeOf(c.StartTime), Now: now,
		Requested: p.record.RequestTime != nil, Committed: committed(p.book, p.record.Conditions), Failure: failure(p.book, p.record.Conditions),
	}
	switch {
	case run.Failure != nil:
		run.Outcome = p.book.outcome(run.Failure, run.Committed)
	case p.book.indexOf(c.Type) >= len(p.book.Steps):
		run.Outcome = OutcomeUpgraded
	}
	return run
}

// answer returns what the step answers. The context of a call ends at the step's deadline, so that
// a slow one does not act after it.
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
	result, err := observe(callCtx, step, run)
	if err != nil || !result.IsZero() {
		return result, err
	}
	if b := p.blocked(step, *c, p.engine.Clock.Now()); b != nil { // the gates took long
		return p.whileBlocked(ctx, step, *b, run)
	}
	first := step.Undo != nil && p.record.RequestTime == nil
	if first {
		if rest := p.engine.untilRequest(); rest > 0 {
			last := lastAnswer(*c)
			return Result{after: rest, reason: last.Reason, message: last.Message}, nil
		}
		now := p.now()
		p.record.RequestTime, p.urgent = &now, true
		if p.saveErr = p.persist(ctx); p.saveErr != nil {
			return Result{}, nil
		}
	}
	result, err = step.Do(callCtx, run)
	if first && err == nil && result.undone {
		p.record.RequestTime = nil
	}
	return result, err
}

// untilRequest returns how long the committing step must not make a request, and how long one is not
// taken back; 0 means that it may.
func (e *Engine) untilRequest() time.Duration {
	since := e.Clock.Now().Sub(e.UnrequestedAt)
	if e.UnrequestedAt.IsZero() || since < 0 { // a clock that has jumped back
		return 0
	}
	return max(minRetry-since, 0)
}

// observe returns the answer of Observe or of the first gate that does not pass; the zero Result
// means that the step may act.
func observe(ctx context.Context, step Step, run Run) (Result, error) {
	if step.Observe != nil {
		if result, err := step.Observe(ctx, run); err != nil || !result.IsZero() {
			return result, err
		}
	}
	for _, gate := range step.Gates {
		result, err := gate.Check(ctx, run)
		switch {
		case err != nil:
			return Result{}, err
		case result.IsZero():
			return Wait(reasonWaiting, "gate %s does not pass", gate.Name), nil
		case !result.Passed():
			return result, nil
		}
	}
	return Result{}, nil
}

// blocker is why a step may not act.
type blocker struct {
	result Result
	hold   bool // Undo is called
}

// blocked returns why the step may not act at that time; nil means that it may.
func (p *pass) blocked(step Step, c history.StepCondition, now time.Time) *blocker {
	pending := beforeCommit(p.book, p.record.Conditions, step)
	constraints := p.constraints
	switch {
	case constraints.Cancel != "" && isCancellable(p.book, p.record.Conditions, step):
		return &blocker{result: Fail(ReasonCancelled, "%s", constraints.Cancel)}
	case pending && !constraints.CommitBy.IsZero() && !now.Before(constraints.CommitBy):
		reason := cmp.Or(p.book.MissedAs, reasonWindowMissed)
		if last := lastAnswer(c); step.FailReason != "" && last.Reason == step.FailReason {
			reason = step.FailReason
		}
		return &blocker{result: missed(c, reason, "not commenced by "+formatTime(constraints.CommitBy)+", when the window closed")}
	case step.FailAfter > 0 && !now.Before(timeOf(c.StartTime).Add(step.FailAfter)):
		return &blocker{result: missed(c, cmp.Or(step.FailReason, reasonTimedOut), fmt.Sprintf("not completed within %s", step.FailAfter))}
	case !step.FailBy.IsZero() && !now.Before(step.FailBy):
		return &blocker{result: missed(c, cmp.Or(step.FailReason, reasonTimedOut), "not completed by "+formatTime(step.FailBy))}
	case pending && constraints.Hold != "":
		return &blocker{result: Wait(ReasonPaused, "%s", constraints.Hold), hold: true}
	}
	return nil
}

// missed is the failure of a step at its deadline, with what the step was last waiting for, and when the
// record was written that has it: a step that waits is not recorded each time that it is called.
func missed(c history.StepCondition, reason, message string) Result {
	if c.Reason != ReasonStarted && c.Message != "" {
		message += lastSeen("at", c.LastProbeTime) + c.Message
	}
	return Fail(reason, "%s", message)
}

// whileBlocked answers for a step that may not act: it is done if what it is named for holds
// already, and it is passed if the upgrade is committed already.
func (p *pass) whileBlocked(ctx context.Context, step Step, b blocker, run Run) (Result, error) {
	if b.hold {
		return p.whileHeld(ctx, step, b, run)
	}
	if beforeCommit(p.book, p.record.Conditions, step) && !step.Commits {
		isCommitted, err := Committed(ctx, p.engine.Clock, p.book, p.record)
		if err != nil {
			return Result{}, err
		}
		if isCommitted {
			return p.adopt(ctx, step)
		}
	}
	reached, err := step.reached(ctx, p.engine.Clock)
	switch {
	case err != nil:
		return Result{}, err
	case reached:
		return step.withItems(ctx, p.engine.Clock, Done("holds already"))
	}
	return step.withItems(ctx, p.engine.Clock, b.result)
}

// whileHeld is whileBlocked for a hold. It ends nothing, so that it reads no more than the cache
// where the committing step has Observe.
func (p *pass) whileHeld(ctx context.Context, step Step, b blocker, run Run) (Result, error) {
	commit := p.book.Steps[p.book.commitIndex()]
	observed := false
	var err error
	if p.book.adopts(p.record.Conditions) {
		observed, err = commit.observed(ctx, p.engine.Clock)
	}
	switch {
	case err != nil:
		return Result{}, err
	case observed && step.Commits:
		return Done("holds already"), nil
	case observed:
		return p.adopt(ctx, step)
	}
	return p.undo(ctx, commit, b.result, run)
}

// undo takes back what the committing step did, for as long as the record holds that it acted. A
// forged or recovered record may hold that while an earlier step runs. If this process has done so in
// the last second, another one whose clock differs has requested it since: without a pause, they
// would do so in turn.
func (p *pass) undo(ctx context.Context, step Step, held Result, run Run) (Result, error) {
	if step.Undo == nil || p.record.RequestTime == nil {
		return held, nil
	}
	if rest := p.engine.untilRequest(); rest > 0 {
		held.after = rest
		return held, nil
	}
	ctx, cancel := WithTimeout(ctx, p.engine.Clock, stepTimeout)
	defer cancel()
	result, err := step.Undo(ctx, run)
	switch {
	case err != nil:
		return Result{}, err
	case result.Passed():
		p.record.RequestTime = nil
	case result.reason != "":
		held.reason = result.reason
	}
	held.after = result.after
	held.message = joinMessages(held.message, result.message)
	return held, nil
}

// renew renews the keep-alives of a step that waits. What it returns is the step's answer, with
// what they report.
func (p *pass) renew(ctx context.Context, step Step, run Run, result Result, err error) (Result, error) {
	for _, keepAlive := range step.KeepAlive {
		run.Requested = p.record.RequestTime != nil
		renewed, renewErr := keepAlive.renew(ctx, p.engine.Clock, run)
		if renewErr == nil && renewed.undone {
			p.record.RequestTime = nil
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

// withItems returns the answer of a step whose Do may no longer be called, with its items.
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
