// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// How often things are done while nothing happens.
const (
	defaultHeartbeat       = 5 * time.Minute
	defaultMessageInterval = time.Minute
	maxWait                = 5 * time.Minute // between two calls of a waiting step, unless it waits for a time
	minRetry               = time.Second     // after an error, or if the step requests it
	stepTimeout            = time.Minute     // of one call of a step, its gates included
)

// Engine runs runbooks. It keeps no state between passes apart from the record.
type Engine struct {
	Clock clock.PassiveClock
	// Save stores the record. After it has returned nil, the next pass must get this record or a successor of
	// it. After an error, the next pass must get the stored record, old or new.
	Save func(context.Context, history.Record) error
	// Renew repeats, by a write, the note of Save about the request of the committing step. The image is nil if
	// it is not known. A process that removes the note reads it first, makes earlier requests conflict by a
	// fence, and removes the note only if it has not changed. A request that was read after the fence is noted
	// after it, so its note stays. If Renew is nil, nothing is noted.
	Renew func(ctx context.Context, image *string) error
	// OnTransition is called with each transition after Save has returned nil. It is not called for a record
	// that was stored although Save returned an error. It may be nil.
	OnTransition func(Transition)
	// Heartbeat is how often the record of a waiting step is saved although nothing has changed: every five
	// minutes if 0, never if negative.
	Heartbeat time.Duration
	// MessageInterval is the shortest time between two saves of a waiting step for a new reason or message: a
	// minute if 0. If negative, a new reason is saved once a minute, and a new message alone is not saved.
	MessageInterval time.Duration
	// SavedAt is when this process last saved the record, if ever. A heartbeat, or the correction of a time in
	// the future, is not saved again within a minute: two processes whose clocks differ would save it in turns.
	SavedAt time.Time
	// UnrequestedAt is when this process last saved that a request of the committing step was withdrawn or had
	// no effect, if ever. The step makes no other request within a second: the save triggers the next pass, and
	// the cache may not show yet what was in the way.
	UnrequestedAt time.Time
}

// Constraints are the arguments of a pass that are not part of the table. They affect only the steps up to the
// committing one, until it is done.
type Constraints struct {
	// NotBefore is the time of the attempt, or zero if it is unknown. Until then, Admit adopts no update.
	NotBefore time.Time
	// CommitBy is the end of the window: an upgrade that has not committed by then fails. A zero time never
	// ends.
	CommitBy time.Time
	// Hold explains why no step may act. It is empty if the upgrade is not held.
	Hold string
	// Cancel explains why the upgrade must be aborted. It is empty if the upgrade is not cancelled. It also
	// affects the steps after a committing one that was skipped for ReasonNoUpdate.
	Cancel string
}

// situation returns what is in the way of the steps before the commit.
func (c Constraints) situation(now time.Time) situation {
	switch {
	case c.Cancel != "":
		return cancelled
	case c.IsExpired(now):
		return expired
	case c.Hold != "":
		return held
	}
	return unhindered
}

// IsExpired reports whether the window is over.
func (c Constraints) IsExpired(now time.Time) bool {
	return !c.CommitBy.IsZero() && !now.Before(c.CommitBy)
}

// isEarly reports whether an update of the cluster cannot belong to the attempt, because its time has not come
// or is unknown.
func (c Constraints) isEarly(now time.Time) bool {
	return c.NotBefore.IsZero() || now.Before(c.NotBefore)
}

// Transition is the beginning of a step, a change of its status or reason, or its end.
type Transition struct {
	// From is the condition as it was last saved, or zero for a step that begins.
	From history.StepCondition
	// To is the condition as it is saved now.
	To history.StepCondition
}

// Pass runs the steps that are ready. It returns the stored record, and when Pass must be called again at the
// latest: zero if the upgrade is finished, otherwise not before the time of the clock. It returns an error if
// the record could not be saved, if an empty record could not be compared with the cluster, or if ctx ended.
// Errors of steps are recorded.
//
// The record must be the stored one (see Save): with a stale record, Pass would run a finished step again. The
// runbook must pass Validate.
//
//   - Order: a step runs only after all steps before it are finished.
//   - Done is done: a finished step is not called again.
//   - Record first: the start of a step is saved before the step is called, and its result before the next
//     step is called, unless that is Repeatable. After a failed save, nothing more is done.
//   - Nothing is done after its deadline. Past it, Reached decides: a step that is reached is done, unless a gate
//     after the commit fails, and any other fails. Errors are retried.
//   - One point of no return: the constraints affect only the steps up to the committing one. PhaseOf decides
//     whether it is passed.
//   - At least once: a crash can make a step run again, but no step is missed.
//   - The record may be lost, and another client may commit: the steps up to the committing one are then
//     recorded as AlreadyReached, and the rest runs.
//   - The table may change: steps are matched by name and former names.
//   - Every wait has an end: the time that the step requested, the next deadline, or five minutes, whichever
//     comes first.
//   - A quiet pass is free: if nothing has changed, only heartbeats are saved. A step whose reason or message
//     keeps changing is saved at most once a minute.
func (e *Engine) Pass(ctx context.Context, book Runbook, record history.Record, c Constraints) (history.Record, time.Time, error) {
	record.Conditions = renameSteps(book, record.Conditions)
	p := &pass{engine: e, book: book, constraints: c, saved: record, record: copyRecord(record)}
	err := p.run(ctx)
	return p.saved, p.next, err
}

// pass is one pass of one upgrade.
type pass struct {
	engine      *Engine
	book        Runbook
	constraints Constraints
	saved       history.Record          // as it is stored
	buffer      []history.StepCondition // holds the conditions of saved after the first save
	record      history.Record          // as it will be
	next        time.Time
	urgent      bool  // what has changed is saved at once
	saveErr     error // of a save within a step
}

func (p *pass) run(ctx context.Context) error {
	if err := p.adoptCommitted(ctx); err != nil {
		return err
	}
	now := p.now()
	if p.record.StartTime == nil {
		p.record.StartTime = &now
	}
	p.record.Conditions = migrate(p.book, p.record.Conditions, now)
	p.complete()
	for {
		step, isNew := p.begin()
		if !isNew || !step.Repeatable { // record first
			if err := p.save(ctx); err != nil || step == nil {
				return err
			}
		}
		now := p.engine.Clock.Now()
		result, err := p.call(ctx, *step, now)
		switch {
		case p.saveErr != nil:
			return p.saveErr
		case ctx.Err() != nil:
			return fmt.Errorf("running step %s: %w", step.Name, ctx.Err())
		}
		c := p.condition(step.Name) // an adoption may have moved it
		applyResult(c, result, err, p.now())
		if !isFinished(*c) {
			return p.wait(ctx, *step, c, result, err != nil, now)
		}
		if commit := p.book.CommitStep(); commit != nil && step.Name == commit.Commit.After {
			if err := p.adoptCommitted(ctx); err != nil {
				return err
			}
		}
	}
}

// begin returns the current step, or nil after the last one, and whether it begins now. It adds the condition
// of the step, and the conditions of the steps that are skipped before it.
func (p *pass) begin() (step *Step, isNew bool) {
	for {
		step, at := current(p.book, p.record.Conditions)
		switch {
		case step == nil || at >= 0:
			return step, false
		case step.Skip.IsZero():
			started := startedCondition(*step, p.milestone(*step), p.now())
			p.record.Conditions = insert(p.book, p.record.Conditions, started)
			return step, true
		}
		p.record.Conditions = insert(p.book, p.record.Conditions, finishedCondition(*step, step.Skip, p.now()))
	}
}

// milestone returns the milestone of a step that begins. If the upgrade has failed, it depends on the failure.
func (p *pass) milestone(step Step) Milestone {
	f := failure(p.book, p.record.Conditions)
	if step.Milestone != MilestoneFailed || f == nil {
		return step.Milestone
	}
	switch p.book.outcome(f, committed(p.book, p.record.Conditions)) {
	case OutcomeCancelled:
		return MilestoneCancelled
	case OutcomeSkipped:
		return MilestoneSkipped
	default:
		return MilestoneFailed
	}
}

// condition returns the condition of a step that has begun.
func (p *pass) condition(name string) *history.StepCondition {
	return &p.record.Conditions[indexOfCondition(p.record.Conditions, name)]
}

// wait ends the pass at an unfinished step. It saves the record if that is worthwhile, and decides when the
// next pass is due if nothing changes.
func (p *pass) wait(ctx context.Context, step Step, c *history.StepCondition, result Result, failing bool, calledAt time.Time) error {
	now := p.engine.Clock.Now()
	var saved history.StepCondition
	at := indexOfCondition(p.saved.Conditions, c.Type)
	if at >= 0 {
		saved = p.saved.Conditions[at]
	}
	if at < 0 || p.saveDue(step, *c, saved, result, now) {
		if err := p.persist(ctx); err != nil {
			return err
		}
		saved = *c
	}

	p.next = now.Add(maxWait)
	if !result.until.IsZero() {
		p.next = later(result.until, now.Add(minRetry))
	}
	noLaterThan := func(t time.Time) { // includes what fell due during the call
		if t.After(calledAt) && t.Before(p.next) {
			p.next = t
		}
	}
	probed := text.TimeOf(saved.LastProbeTime)
	if result.after > 0 {
		noLaterThan(now.Add(result.after))
	}
	if failing { // wait half as long as it has been failing for
		since := probed
		if saved.Status == metav1.ConditionUnknown {
			since = text.TimeOf(saved.LastTransitionTime)
		}
		noLaterThan(now.Add(max(minRetry, now.Sub(since)/2)))
	}
	for _, slowAt := range []time.Time{p.book.slowAt(step, *c), p.book.slowAt(step, saved)} {
		if !slowAt.IsZero() {
			noLaterThan(slowAt)
		}
	}
	noLaterThan(p.engine.changeDue(*c, saved))
	if isPauseChange(*c, saved) {
		noLaterThan(p.engine.pauseDue(now))
	}
	noLaterThan(p.deadline(step, *c))
	if heartbeat := p.engine.heartbeat(result); heartbeat > 0 {
		noLaterThan(probed.Add(heartbeat))
	}
	if p.next.Before(now) {
		p.next = now
	}
	return nil
}

// saveDue reports whether the record of a waiting step should be saved: for the heartbeat, because the step is
// slow now, because another step has changed, or because the answer has changed and the last save is old
// enough. It is also due if the clock has jumped back.
func (p *pass) saveDue(step Step, c, saved history.StepCondition, result Result, now time.Time) bool {
	probed := text.TimeOf(saved.LastProbeTime)
	since := now.Sub(probed)
	heartbeat := p.engine.heartbeat(result)
	age := now.Sub(p.engine.SavedAt)
	if (heartbeat > 0 && since >= heartbeat || since <= -time.Second) && (age < 0 || age >= defaultMessageInterval) {
		return true
	}
	if due := p.engine.changeDue(c, saved); !due.IsZero() && !now.Before(due) {
		return true
	}
	return p.changedBeside(c, saved) || (isPauseChange(c, saved) || p.becomesSlow(step, saved, now)) && !now.Before(p.engine.pauseDue(now))
}

// becomesSlow reports whether a step is slow now and was not slow when it was saved, unless it has made
// progress since.
func (p *pass) becomesSlow(step Step, saved history.StepCondition, now time.Time) bool {
	slowAt := p.book.slowAt(step, saved)
	return !slowAt.IsZero() && text.TimeOf(saved.LastProbeTime).Before(slowAt) && !now.Before(slowAt)
}

// isPauseChange reports whether a hold of the step has begun or ended.
func isPauseChange(c, saved history.StepCondition) bool {
	return (saved.Reason == ReasonPaused) != (c.Reason == ReasonPaused)
}

// pauseDue returns when to save that a step is slow, or that its hold has begun or ended: at once, unless this
// process saved the record within the last second. Two processes whose clocks differ would otherwise overwrite
// the answers of each other without a pause.
func (e *Engine) pauseDue(now time.Time) time.Time {
	if due := e.SavedAt.Add(minRetry); !now.Before(e.SavedAt) && now.Before(due) {
		return due
	}
	return now
}

// changedBeside reports whether there is a change to save at once: another step, the first answer of this step,
// or the end of one of its items.
func (p *pass) changedBeside(c, saved history.StepCondition) bool {
	if p.saved.StartTime == nil {
		return true
	}
	if (p.record.RequestTime == nil) != (p.saved.RequestTime == nil) || !sameImage(p.record.RequestedImage, p.saved.RequestedImage) || hasNewEnd(c.Items, saved.Items) {
		return true
	}
	for _, t := range p.transitions() {
		if t.To.Type != c.Type || p.urgent || saved.Reason == ReasonStarted {
			return true
		}
	}
	return false
}

// hasNewEnd reports whether an item has ended since the last save.
func hasNewEnd(items, saved []history.StepItem) bool {
	return slices.ContainsFunc(items, func(item history.StepItem) bool {
		return item.Ended() && !slices.ContainsFunc(saved, func(s history.StepItem) bool { return s.Name == item.Name && s.Ended() })
	})
}

// changeDue returns when to save the answer of a waiting step, or zero if the answer is saved. The first change
// of a reason is saved at once.
func (e *Engine) changeDue(c, saved history.StepCondition) time.Time {
	interval := cmp.Or(max(e.MessageInterval, 0), defaultMessageInterval)
	switch {
	case c.Reason != saved.Reason || c.Status != saved.Status:
		start, since := text.TimeOf(c.StartTime), text.TimeOf(saved.LastTransitionTime)
		if saved.ReasonTime == nil && (!since.After(start) || saved.Status == metav1.ConditionUnknown && saved.LastAnswer == nil) {
			return start
		}
		return later(since, text.TimeOf(saved.ReasonTime)).Add(min(interval, defaultMessageInterval))
	case e.MessageInterval >= 0 && (c.Message != saved.Message || !slices.Equal(c.Items, saved.Items)):
		return text.TimeOf(saved.LastProbeTime).Add(interval)
	}
	return time.Time{}
}

// heartbeat returns how often a step with this answer is saved although nothing has changed. If it is not
// positive, the step is not saved.
func (e *Engine) heartbeat(result Result) time.Duration {
	if !result.until.IsZero() {
		return -1
	}
	return cmp.Or(e.Heartbeat, defaultHeartbeat)
}

// save stores the record if a step has changed.
func (p *pass) save(ctx context.Context) error {
	if p.saved.StartTime != nil && len(p.transitions()) == 0 && !p.isMended() {
		return nil
	}
	return p.persist(ctx)
}

// isMended reports whether a time in the future was replaced. The replacement must be saved, or each pass would
// start counting from it again. It is not saved again within a minute, because another process whose clock is
// ahead would restore it.
func (p *pass) isMended() bool {
	if age := p.now().Sub(p.engine.SavedAt); age >= 0 && age < defaultMessageInterval {
		return false
	}
	return slices.ContainsFunc(p.record.Conditions, func(c history.StepCondition) bool {
		at := indexOfCondition(p.saved.Conditions, c.Type)
		return at >= 0 && !isFinished(c) && !isFinished(p.saved.Conditions[at]) && hasFutureTime(&p.saved.Conditions[at], p.now())
	})
}

// persist stores the record, and then calls OnTransition with the changes.
func (p *pass) persist(ctx context.Context) error {
	now := p.now()
	for i := range p.record.Conditions {
		if !isFinished(p.record.Conditions[i]) {
			p.record.Conditions[i].LastProbeTime = &now
		}
	}
	p.noteProgress(now)
	transitions := p.transitions()
	for i, t := range transitions {
		if c := p.condition(t.To.Type); !isFinished(*c) && hasOtherReason(t.From, *c) {
			c.ReasonTime = &now
			transitions[i].To = *c
		}
	}
	if err := p.engine.Save(ctx, *p.record.DeepCopy()); err != nil {
		return fmt.Errorf("saving the record: %w", err)
	}
	p.saved = p.record
	p.buffer = append(p.buffer[:0], p.record.Conditions...)
	p.saved.Conditions = p.buffer
	if p.engine.OnTransition != nil {
		for _, t := range transitions {
			p.engine.OnTransition(t)
		}
	}
	return nil
}

// hasOtherReason reports whether the reason of a waiting step has changed. An unknown state, or its end, does
// not count as a change.
func hasOtherReason(from, to history.StepCondition) bool {
	before := LastAnswer(from).Reason
	return before != "" && before != ReasonStarted && before != LastAnswer(to).Reason
}

// noteProgress notes that the answer of a waiting step has changed since the last save, unless the step reports
// its progress itself. An unknown state, or its end, does not count as progress.
func (p *pass) noteProgress(now metav1.Time) {
	for i := range p.record.Conditions {
		c := &p.record.Conditions[i]
		at := indexOfCondition(p.saved.Conditions, c.Type)
		if at < 0 || isFinished(*c) || c.Status != metav1.ConditionFalse {
			continue
		}
		saved := p.saved.Conditions[at]
		if c.Fingerprint != "" && saved.Fingerprint != "" {
			continue
		}
		if last := LastAnswer(saved); last.Reason != ReasonStarted && (c.Reason != last.Reason || c.Message != last.Message) {
			c.ProgressTime = &now
		}
	}
}

// transitions returns the conditions that have begun or ended since the last save, or whose status or reason
// has changed.
func (p *pass) transitions() []Transition {
	var changed []Transition
	for i, c := range p.record.Conditions {
		if indexOfCondition(p.record.Conditions, c.Type) != i {
			continue // a duplicate in a damaged record
		}
		var from history.StepCondition
		if at := indexOfCondition(p.saved.Conditions, c.Type); at >= 0 {
			from = p.saved.Conditions[at]
		}
		if from.Status != c.Status || from.Reason != c.Reason || isFinished(from) != isFinished(c) || c.StartTime != nil && !c.StartTime.Equal(from.StartTime) {
			changed = append(changed, Transition{From: from, To: c})
		}
	}
	return changed
}

func (p *pass) now() metav1.Time { return toMetaTime(p.engine.Clock.Now()) }
