// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// noon is when every world begins; not at a whole second, for a real clock never is.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// longest is the longest that anybody may go without looking.
const longest = 5 * time.Minute

// tester is a test, a fuzz test or a property of rapid.
type tester interface {
	Helper()
	Context() context.Context
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is all that there is around an engine: a clock, a store for the record,
// things that happen by themselves, and a driver that looks when it was told to
// and when something has happened, never otherwise. At each call of a step it
// checks what the engine promises of every call.
type world struct {
	t     tester
	clock *testingclock.FakePassiveClock
	store store
	// book makes the table, anew for each pass.
	book func() engine.Runbook

	coming []happening           // what will happen by itself
	calls  []string              // the steps that were called, in order
	told   []engine.Transition   // what the observer was told
	passes int                   // passes so far
	atCall func(call int) moment // when to crash in the n-th call of a step, from 1
}

type happening struct {
	at time.Time
	do func()
}

func newWorld(t tester) *world {
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(noon)}
	w.store = store{t: t, plan: func(int) fate { return kept }}
	w.store.lose()
	w.atCall = func(int) moment { return never }
	return w
}

// after lets something happen by itself.
func (w *world) after(d time.Duration, do func()) {
	w.coming = append(w.coming, happening{at: w.clock.Now().Add(d), do: do})
}

// crash is what a crashing process panics with, and errCrashed what the driver sees of it.
type crash struct{}

var errCrashed = errors.New("crashed")

// moment is a moment in the call of a step.
type moment int

const (
	never moment = iota
	beforeActing
	afterActing
)

// pass is one pass of a life that knows nothing of earlier ones: the engine is
// new each time, and so is the table.
func (w *world) pass() (next time.Time, err error) {
	w.t.Helper()
	defer func() {
		switch p := recover(); p {
		case nil:
		case crash{}:
			err = errCrashed
		default:
			panic(p)
		}
	}()
	w.passes++
	w.store.refused = false
	e := &engine.Engine{Clock: w.clock, Save: w.store.save, Observe: func(t engine.Transition) { w.told = append(w.told, t) }}
	now, record := w.clock.Now(), w.store.load()
	returned, next, err := e.Pass(w.t.Context(), w.watched(w.book()), record)
	if err != nil {
		return next, err
	}
	if over := engine.Assess(w.book(), w.store.load(), w.clock.Now()).Over(); over != next.IsZero() {
		w.t.Errorf("over: %t, yet the next look is at %s", over, next)
	}
	if !next.IsZero() && (!next.After(now) || next.Sub(w.clock.Now()) > longest) {
		w.t.Errorf("the next look is %s after the pass began, not within (0, %s]", next.Sub(now), longest)
	}
	if got, want := len(returned.Conditions), len(w.store.load().Conditions); got != want {
		w.t.Errorf("a record of %d conditions was returned, %d are kept", got, want)
	}
	return next, nil
}

// play drives the upgrade until a pass says that all is over. Errors are retried
// as a work queue would; a life in which saving goes on failing ends.
func (w *world) play() {
	w.t.Helper()
	w.playUntil(func() bool { return false })
}

// playUntil drives the upgrade until it is so, or all is over.
func (w *world) playUntil(so func() bool) {
	w.t.Helper()
	failures := 0
	for range 2000 {
		if so() {
			return
		}
		next, err := w.pass()
		switch {
		case errors.Is(err, errCrashed):
			w.restart()
		case err != nil:
			if failures++; failures%3 == 0 {
				w.restart()
			}
			w.advance(w.clock.Now().Add(time.Second))
		case next.IsZero():
			return
		default:
			w.advance(next)
		}
	}
	w.t.Fatalf("no end in sight after %d passes; the record is\n%q", w.passes, lines(w.store.kept))
}

// restart ends a life; the store is asked again in the next.
func (w *world) restart() { w.store.dead = false }

// advance moves the clock to that time, or to when the next thing happens, if that is sooner.
func (w *world) advance(to time.Time) {
	first := -1
	for i, h := range w.coming {
		if !h.at.After(to) && (first < 0 || h.at.Before(w.coming[first].at)) {
			first = i
		}
	}
	if first < 0 {
		w.clock.SetTime(to)
		return
	}
	h := w.coming[first]
	w.coming = append(w.coming[:first:first], w.coming[first+1:]...)
	if h.at.After(w.clock.Now()) {
		w.clock.SetTime(h.at)
	}
	h.do()
}

// pause lets time pass in which nobody looks: the operator is down, the cluster is not.
func (w *world) pause(d time.Duration) {
	for until := w.clock.Now().Add(d); w.clock.Now().Before(until); {
		w.advance(until)
	}
}

// watched checks each call of each step, and lets the process crash in it.
func (w *world) watched(book engine.Runbook) engine.Runbook {
	watch := func(steps []engine.Step, cleanup bool) []engine.Step {
		watched := make([]engine.Step, len(steps))
		for i, step := range steps {
			watched[i] = step
			watched[i].Do = func(ctx context.Context, run engine.Run) (engine.Result, error) {
				w.check(book, i, cleanup, run)
				w.calls = append(w.calls, step.Name)
				crashes := w.atCall(len(w.calls))
				if crashes == beforeActing {
					panic(crash{})
				}
				result, err := step.Do(ctx, run)
				if crashes == afterActing {
					panic(crash{})
				}
				return result, err
			}
		}
		return watched
	}
	all := book
	all.Steps, all.Cleanup = watch(book.Steps, false), watch(book.Cleanup, true)
	return all
}

// check is what the engine promises of every call of a step.
func (w *world) check(book engine.Runbook, i int, cleanup bool, run engine.Run) {
	w.t.Helper()
	if w.store.refused {
		w.t.Error("a step is called although a save failed in this pass")
	}
	steps := book.Steps
	if cleanup {
		steps = book.Cleanup
	}
	step, stored, now := steps[i], renamed(book, w.store.load()), w.clock.Now()

	c := condition(stored, step.Name)
	switch {
	case c == nil:
		w.t.Fatalf("%s is called, and the store does not hold that it began", step.Name)
	case c.CompleteTime != nil:
		w.t.Errorf("%s is called, and it is over", step.Name)
	case c.StartTime == nil || !run.Since.Equal(c.StartTime.Time):
		w.t.Errorf("%s is told that it was first tried at %s, the store says %s", step.Name, run.Since, c.StartTime)
	case stored.StartTime == nil || !run.Started.Equal(stored.StartTime.Time):
		w.t.Errorf("%s is told that the upgrade began at %s, the store says %s", step.Name, run.Started, stored.StartTime)
	case !run.Now.Equal(now):
		w.t.Errorf("%s is told that it is %s, the clock says %s", step.Name, run.Now, now)
	}
	for _, before := range steps[:i] {
		if b := condition(stored, before.Name); b == nil || b.CompleteTime == nil {
			w.t.Errorf("%s is called, and the store does not hold the end of %s", step.Name, before.Name)
		}
	}
	if (run.Failure != nil) != cleanup {
		w.t.Errorf("%s is told of the failure %v; clean-up: %t", step.Name, run.Failure, cleanup)
	}
	if given := givenUp(book, stored); given != cleanup {
		w.t.Errorf("%s is called; given up: %t, clean-up: %t", step.Name, given, cleanup)
	}
	if step.FailAfter > 0 && !now.Before(c.StartTime.Add(step.FailAfter)) {
		w.t.Errorf("%s is called at %s, after its FailAfter", step.Name, now)
	}
	commit := indexOfCommit(book)
	if committed := condition(stored, book.Steps[commit].Name); cleanup || i > commit || committed != nil && committed.CompleteTime != nil {
		return
	}
	if !book.CommitBy.IsZero() && !now.Before(book.CommitBy) {
		w.t.Errorf("%s is called at %s, after the window closed", step.Name, now)
	}
	if book.Hold != "" || book.Cancelled != "" {
		w.t.Errorf("%s is called although the upgrade is held or cancelled", step.Name)
	}
}

func indexOfCommit(book engine.Runbook) int {
	for i, step := range book.Steps {
		if step.Commits {
			return i
		}
	}
	return len(book.Steps)
}

func givenUp(book engine.Runbook, record history.History) bool {
	return slices.ContainsFunc(record.Conditions, func(c history.StepCondition) bool {
		cleans := slices.ContainsFunc(book.Cleanup, func(s engine.Step) bool { return s.Name == c.Type })
		return c.CompleteTime != nil && c.Status == metav1.ConditionFalse && !cleans
	})
}

// condition is the one of that type; of several in a damaged record, one that is over.
func condition(record history.History, name string) *history.StepCondition {
	var found *history.StepCondition
	for i := range record.Conditions {
		c := &record.Conditions[i]
		if c.Type == name && (found == nil || found.CompleteTime == nil && c.CompleteTime != nil) {
			found = c
		}
	}
	return found
}

// renamed is the record with the names that the steps have now.
func renamed(book engine.Runbook, record history.History) history.History {
	for _, step := range slices.Concat(book.Steps, book.Cleanup) {
		for _, was := range step.Was {
			if old := condition(record, was); old != nil && condition(record, step.Name) == nil {
				old.Type = step.Name
			}
		}
	}
	return record
}

// lines are the record as people read it: step, status, reason, and "…" while it is not over.
func lines(record history.History) []string {
	var all []string
	for _, c := range record.Conditions {
		line := fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason)
		if c.CompleteTime == nil {
			line += " …"
		}
		all = append(all, line)
	}
	return all
}

// store keeps the record as an API server would: as JSON, so that nothing is
// shared with it, and times lose what JSON cannot hold.
type store struct {
	t       tester
	kept    history.History
	saves   int
	plan    func(save int) fate // what becomes of the n-th save, from 1
	dead    bool                // all saves of this life fail
	refused bool                // a save of this pass was answered with an error
}

// fate is what becomes of a save.
type fate int

const (
	kept       fate = iota
	refused         // not applied, answered with an error
	cutOff          // the same, and all later ones of this life
	unanswered      // applied, answered with an error
	crashed         // applied, and the process ends
	unheard         // not applied, and the process ends
	wiped           // applied, the process ends, and the record is lost
)

var errStore = errors.New("the store does not answer")

func (s *store) save(_ context.Context, record history.History) error {
	s.saves++
	if s.dead {
		s.refused = true
		return errStore
	}
	switch s.plan(s.saves) {
	case refused:
		s.refused = true
		return errStore
	case cutOff:
		s.dead, s.refused = true, true
		return errStore
	case unheard:
		panic(crash{})
	case unanswered:
		s.put(record)
		s.refused = true
		return errStore
	case crashed:
		s.put(record)
		panic(crash{})
	case wiped:
		s.lose()
		panic(crash{})
	default:
		s.put(record)
		return nil
	}
}

func (s *store) put(record history.History) {
	raw, err := json.Marshal(record)
	if err != nil {
		s.t.Fatal(err)
	}
	s.kept = history.History{}
	if err := json.Unmarshal(raw, &s.kept); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) load() history.History { return *s.kept.DeepCopy() }

func (s *store) lose() { s.put(history.History{Version: "4.4.6"}) }
