// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// How often things are done while nothing happens.
const (
	heartbeatInterval = 5 * time.Minute // a waiting step's record is renewed, and it is looked at, at least so often
	messageInterval   = time.Minute     // a message alone is recorded at most so often
	minRetry          = time.Second     // after an error, or if the step asks for it
	stepTimeout       = time.Minute     // one call of a step
)

// Engine carries out runbooks. It keeps nothing between passes: all that it
// knows of an upgrade is the record.
type Engine struct {
	// Clock tells the time.
	Clock clock.PassiveClock
	// Save keeps the record. Once it has returned nil, the next pass must be
	// given this record or one that was made from it; after an error, the one
	// that is really kept, which may be either.
	Save func(context.Context, history.Record) error
	// Observe is told of each transition once Save has returned nil for it: so
	// not of one that was saved but answered with an error. It may be nil.
	Observe func(Transition)
}

// Transition is a step's beginning, a change of its status or reason, or its end.
type Transition struct {
	// From is the condition as it was saved before; zero for a step that begins.
	From history.StepCondition
	// To is the condition as it is saved now.
	To history.StepCondition
}

// Pass takes as many steps as are ready, and returns the record as it is kept
// now and when to look again at the latest (zero: never, all is over). That time
// is not before the clock's as Pass returns; a caller who finds it past looks
// again at once. Pass returns an error if the record could not be saved, or could
// not be compared with the cluster, or if ctx ended; errors of steps are recorded.
//
// The record must be the one that is kept (see Save): handed a stale one, Pass
// cannot know that a step is over, and takes it again. The book must be one that
// Validate accepts.
//
//   - Order: a step is tried only when all before it are over.
//   - Done is done: a step that is over is not called again.
//   - Record first: that a step began is saved before it is called, and how it
//     ended before the next one is. If a save fails, nothing more is done.
//   - Nothing is done after its deadline: past it Reached is asked instead. Yes
//     is done, no is failed, an error is retried.
//   - One point of no return: the window, a hold and a cancellation bear on the
//     steps up to the committing one and on no others.
//   - At least once: a crash can make a step run again, never makes one be missed.
//   - The record may be lost: if it is empty and the committing step's Reached
//     says yes, the steps up to it are recorded as passed and the rest is done.
//   - The table may change: steps are matched by name, see align.
//   - Every wait has an end: of what the step asked for, the next deadline and
//     five minutes, the earliest.
//   - A pass in which nothing changed saves nothing, but for a sign of life
//     every five minutes; a message alone is saved at most once a minute.
func (e *Engine) Pass(ctx context.Context, book Runbook, record history.Record) (history.Record, time.Time, error) {
	record.Conditions = renameSteps(book, record.Conditions)
	p := &pass{engine: e, book: book, saved: record, record: copyRecord(record)}
	err := p.run(ctx)
	return p.saved, p.next, err
}

// Committed says whether the point of no return is passed: by the record, or,
// if that is empty, by the cluster.
func Committed(ctx context.Context, book Runbook, record history.Record) (bool, error) {
	if len(record.Conditions) > 0 {
		return committed(book, renameSteps(book, record.Conditions)), nil
	}
	commit := book.commitIndex()
	if commit == len(book.Steps) {
		return false, nil
	}
	reached, err := book.Steps[commit].reached(ctx)
	if err != nil {
		return false, fmt.Errorf("comparing the empty record with the cluster: %w", err)
	}
	return reached, nil
}

// pass is one look at one upgrade.
type pass struct {
	engine *Engine
	book   Runbook
	saved  history.Record // as it is kept
	record history.Record // as it will be
	next   time.Time
}

func (p *pass) run(ctx context.Context) error {
	if err := p.recoverLostRecord(ctx); err != nil {
		return err
	}
	now := p.now()
	if p.record.StartTime == nil {
		p.record.StartTime = &now
	}
	p.record.Conditions = migrate(p.book, p.record.Conditions, now)
	for {
		step, at := current(p.book, p.record.Conditions)
		if step != nil && at < 0 {
			p.record.Conditions = insert(p.book, p.record.Conditions, startedCondition(*step, p.now()))
			at = indexOfCondition(p.record.Conditions, step.Name)
		}
		if err := p.save(ctx); err != nil || step == nil { // record first
			return err
		}
		now := p.engine.Clock.Now()
		result, err := p.try(ctx, *step, p.record.Conditions[at], now)
		if ctx.Err() != nil {
			return fmt.Errorf("taking step %s: %w", step.Name, ctx.Err())
		}
		c := &p.record.Conditions[at]
		applyResult(c, result, err, p.now())
		if !isFinished(*c) {
			return p.wait(ctx, *step, at, result, err != nil, now)
		}
	}
}

// recoverLostRecord goes on with an upgrade whose record was lost after it had commenced.
func (p *pass) recoverLostRecord(ctx context.Context) error {
	if len(p.record.Conditions) > 0 {
		return nil
	}
	reached, err := Committed(ctx, p.book, p.record)
	if err != nil || !reached {
		return err
	}
	now := p.now()
	for i := range p.book.commitIndex() + 1 {
		p.record.Conditions = append(p.record.Conditions, finishedCondition(p.book.Steps[i].Name,
			Skip(reasonAlreadyReached, "the cluster is past this step already; there is no record of when it was taken"), now))
	}
	return nil
}

// try calls the step, unless something bars it. The call's context ends at the
// step's deadline, lest a slow one act after it.
func (p *pass) try(ctx context.Context, step Step, c history.StepCondition, now time.Time) (Result, error) {
	if blocker := p.blocked(step, c, now); blocker != nil {
		reached, err := step.reached(ctx)
		switch {
		case err != nil:
			return Result{}, err
		case reached:
			return Done("found to hold already"), nil
		}
		return *blocker, nil
	}
	limit := stepTimeout
	if due := deadline(p.book, p.record.Conditions, step, c); !due.IsZero() {
		limit = min(limit, due.Sub(now))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return step.Do(ctx, Run{Started: timeOf(p.record.StartTime), Since: timeOf(c.StartTime), Now: now, Failure: failure(p.book, p.record.Conditions)})
}

// blocked says why the step may not act now; nil if it may.
func (p *pass) blocked(step Step, c history.StepCondition, now time.Time) *Result {
	var blocker Result
	commitPending := beforeCommit(p.book, p.record.Conditions, step)
	switch {
	case commitPending && p.book.CancelReason != "":
		blocker = Fail(ReasonCancelled, "%s", p.book.CancelReason)
	case commitPending && !p.book.CommitDeadline.IsZero() && !now.Before(p.book.CommitDeadline):
		blocker = deadlineMissed(step, c, reasonWindowMissed, fmt.Sprintf("not commenced by %s, when the window closed", p.book.CommitDeadline.UTC().Format(time.RFC3339)))
	case step.FailAfter > 0 && !now.Before(timeOf(c.StartTime).Add(step.FailAfter)):
		blocker = deadlineMissed(step, c, reasonTimedOut, fmt.Sprintf("given up after %s", step.FailAfter))
	case commitPending && p.book.PauseReason != "":
		blocker = Wait(reasonPaused, "%s", p.book.PauseReason)
	default:
		return nil
	}
	return &blocker
}

// deadlineMissed is the failure of a step at its deadline. It says what the step was last waiting for.
func deadlineMissed(step Step, c history.StepCondition, reason, message string) Result {
	if slices.Contains(step.FailReasons, c.Reason) {
		reason = c.Reason
	}
	if c.Reason != ReasonStarted && c.Message != "" {
		message = fmt.Sprintf("%s; it was waiting for: %s", message, c.Message)
	}
	return Fail(reason, "%s", message)
}

// wait ends the pass at a step that is not over: it says when to look again
// although nothing may have changed, and saves what is worth it.
func (p *pass) wait(ctx context.Context, step Step, at int, result Result, failing bool, calledAt time.Time) error {
	now := p.engine.Clock.Now()
	c := &p.record.Conditions[at]
	saved := p.saved.Conditions[indexOfCondition(p.saved.Conditions, c.Type)] // it began, so it was saved
	if p.saveDue(step, *c, saved, now) || p.changed() {
		if err := p.persist(ctx); err != nil {
			return err
		}
		saved = *c
	}

	p.next = now.Add(heartbeatInterval)
	noLaterThan := func(t time.Time) { // what fell due during the call counts
		if t.After(calledAt) && t.Before(p.next) {
			p.next = t
		}
	}
	started, probed := timeOf(c.StartTime), timeOf(saved.LastProbeTime)
	if result.after > 0 {
		noLaterThan(now.Add(result.after))
	}
	if failing { // wait half as long as it has been failing for
		noLaterThan(now.Add(max(minRetry, now.Sub(timeOf(c.LastTransitionTime))/2)))
	}
	if step.SlowAfter > 0 {
		noLaterThan(started.Add(step.SlowAfter))
	}
	if c.Message != saved.Message {
		noLaterThan(probed.Add(messageInterval))
	}
	noLaterThan(deadline(p.book, p.record.Conditions, step, *c))
	noLaterThan(probed.Add(heartbeatInterval))
	if p.next.Before(now) {
		p.next = now
	}
	return nil
}

// saveDue says whether the record of a waiting step is to be saved although its
// status has not changed: as a sign of life, to show that it is slow, or for
// its message. A clock that has jumped back makes it due.
func (p *pass) saveDue(step Step, c, saved history.StepCondition, now time.Time) bool {
	probed := timeOf(saved.LastProbeTime)
	since := now.Sub(probed)
	slowAt := timeOf(c.StartTime).Add(step.SlowAfter)
	return since >= heartbeatInterval || since <= -time.Second ||
		step.SlowAfter > 0 && probed.Before(slowAt) && !now.Before(slowAt) ||
		c.Message != saved.Message && since >= messageInterval
}

// save keeps the record if a step has changed.
func (p *pass) save(ctx context.Context) error {
	if !p.changed() {
		return nil
	}
	return p.persist(ctx)
}

func (p *pass) changed() bool { return p.saved.StartTime == nil || len(p.transitions()) > 0 }

// persist keeps the record, and then tells of what has changed.
func (p *pass) persist(ctx context.Context) error {
	now := p.now()
	for i := range p.record.Conditions {
		if !isFinished(p.record.Conditions[i]) {
			p.record.Conditions[i].LastProbeTime = &now
		}
	}
	transitions := p.transitions()
	if err := p.engine.Save(ctx, *p.record.DeepCopy()); err != nil {
		return fmt.Errorf("saving the record: %w", err)
	}
	p.saved = copyRecord(p.record)
	if p.engine.Observe != nil {
		for _, t := range transitions {
			p.engine.Observe(t)
		}
	}
	return nil
}

// transitions are the conditions whose status or reason differs from what is
// kept, or which begin or are over now.
func (p *pass) transitions() []Transition {
	var changed []Transition
	for i, c := range p.record.Conditions {
		if indexOfCondition(p.record.Conditions, c.Type) != i {
			continue // a duplicate in a damaged record, which counts for nothing
		}
		var from history.StepCondition
		if at := indexOfCondition(p.saved.Conditions, c.Type); at >= 0 {
			from = p.saved.Conditions[at]
		}
		if from.Status != c.Status || from.Reason != c.Reason || isFinished(from) != isFinished(c) || from.StartTime == nil && c.StartTime != nil {
			changed = append(changed, Transition{From: from, To: c})
		}
	}
	return changed
}

func (p *pass) now() metav1.Time { return toMetaTime(p.engine.Clock.Now()) }

func (s Step) reached(ctx context.Context) (bool, error) {
	if s.Reached == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return s.Reached(ctx)
}
