// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// noon is when every world starts. Like a real clock, it is not at a whole second.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// maxIdle is the maximum time between two passes.
const maxIdle = 5 * time.Minute

// tester is a test, a fuzz test, or a property of rapid.
type tester interface {
	Helper()
	Context() context.Context
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is the environment of an engine: a clock, a store for the record, scheduled events, and a
// driver that runs a pass when the last one requested it and when something has happened, never
// otherwise. It checks the engine's guarantees at each call of a step.
type world struct {
	t     tester
	clock *testingclock.FakePassiveClock
	store store
	// book returns a new table for each pass.
	book func() engine.Runbook
	// constraints returns new constraints for each pass.
	constraints func() engine.Constraints

	// savedAt is when this process last saved the record, if ever.
	savedAt time.Time
	// unrequestedAt is when this process saved last that a request was withdrawn or had no effect.
	unrequestedAt time.Time

	events      []event               // scheduled
	calls       []string              // the steps that were called, in order
	transitions []engine.Transition   // passed to OnTransition
	passes      int                   // passes so far
	atCall      func(call int) moment // when to crash in the n-th call of a step, from 1
}

type event struct {
	at time.Time
	do func()
}

func newWorld(t tester) *world {
	w := &world{t: t, clock: testingclock.NewFakePassiveClock(noon)}
	w.store = store{t: t, plan: func(int) saveFault { return serveSave }}
	w.store.lose()
	w.constraints = func() engine.Constraints { return engine.Constraints{} }
	w.atCall = func(int) moment { return never }
	return w
}

// crash is the panic of a crashing process, and errCrashed the error that the driver returns for
// it.
type crash struct{}

var errCrashed = errors.New("crashed")

// moment is a time within the call of a step.
type moment int

const (
	never moment = iota
	beforeActing
	afterActing
)

// pass runs one pass of a new process: both the engine and the table are new.
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
	e := &engine.Engine{
		Clock: w.clock, Save: w.save, OnTransition: func(t engine.Transition) { w.transitions = append(w.transitions, t) },
		SavedAt: w.savedAt, UnrequestedAt: w.unrequestedAt,
	}
	now, record := w.clock.Now(), w.store.load()
	returned, next, err := e.Pass(w.t.Context(), w.instrument(w.book()), record, w.constraints())
	if err != nil {
		return next, err
	}
	if finished := engine.Summarize(w.book(), w.store.load(), w.clock.Now(), w.constraints()).Finished(); finished != next.IsZero() {
		w.t.Errorf("finished: %t, and the next pass is at %s", finished, next)
	}
	if !next.IsZero() && (!next.After(now) || next.Sub(w.clock.Now()) > maxIdle) {
		w.t.Errorf("the next pass is %s after the start of this one, not within (0, %s]", next.Sub(now), maxIdle)
	}
	if got, want := len(returned.Conditions), len(w.store.load().Conditions); got != want {
		w.t.Errorf("a record of %d conditions was returned, %d are kept", got, want)
	}
	return next, nil
}

// save stores a record, and notes when it no longer holds a request.
func (w *world) save(ctx context.Context, record history.Record) error {
	if w.store.load().RequestTime != nil && record.RequestTime == nil {
		w.unrequestedAt = w.clock.Now()
	}
	return w.store.save(ctx, record)
}
