// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// scheduleEvery calls a function at an interval until a time.
func scheduleEvery(w *world, every, until time.Duration, do func()) {
	for at := every; at <= until; at += every {
		w.after(at, do)
	}
}

func TestHeartbeat_is_the_only_save_while_nothing_changes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result engine.Result
		err    error
	}{
		"while it waits":             {result: engine.Wait("NotYet", "a while")},
		"without a message":          {},
		"state unknown":              {err: errNoAnswer},
		"requesting an earlier pass": {result: engine.WaitFor(10*time.Second, "NotYet", "a while")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.setDo("First", func(engine.Run) (engine.Result, error) { return tc.result, tc.err })
			scheduleEvery(w, 7*time.Second, 2*time.Hour, func() {})
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			saves := w.store.saves
			w.runUntil(func() bool {
				if c := condition(w.store.load(), "First"); c.LastProbeTime.Add(5*time.Minute + 7*time.Second).Before(w.clock.Now()) {
					t.Fatalf("at %s, the last sign of life is of %s", w.clock.Now(), c.LastProbeTime)
				}
				return w.clock.Now().After(noon.Add(time.Hour))
			})
			if got := w.store.saves - saves; got != 12 {
				t.Errorf("%d saves in an hour in which nothing changed, want 12", got)
			}
			if got := len(w.transitions); got > 3 {
				t.Errorf("%d transitions in an hour without changes: %v", got, w.transitions)
			}
		})
	}
}

func TestMessage_is_saved_at_most_once_a_minute_and_never_lost(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	nodes := 0
	s.setDo("First", func(engine.Run) (engine.Result, error) {
		return engine.Wait("NotYet", "%d nodes are ready", nodes), nil
	})
	scheduleEvery(w, 5*time.Second, 9*time.Minute+40*time.Second, func() { nodes++ })
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	saves := w.store.saves
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(9*time.Minute + 40*time.Second)) })
	if got := w.store.saves - saves; got != 9 {
		t.Errorf("%d saves in ten minutes in which the message changed every five seconds", got)
	}
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(10*time.Minute + 40*time.Second)) })
	if got := w.store.load().Conditions[0].Message; got != "116 nodes are ready" {
		t.Errorf("a minute after the last change the record has %q", got)
	}
}

// TestHold_is_saved_by_a_process_at_most_once_a_second checks that two processes with different clocks that
// disagree about a hold do not save it in turns without a pause.
func TestHold_is_saved_by_a_process_at_most_once_a_second(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Wait("NotYet", "a while"))
	for _, s.Hold = range []string{"", "paused by an administrator", ""} { // a first reason is always saved
		w.mustPass()
	}
	w.savedAt = w.clock.Now()
	for range 100 { // the other process has saved that the step is not held
		s.Hold = "paused by an administrator"
		next, err := w.pass()
		if err != nil {
			t.Fatal(err)
		}
		if c := condition(w.store.load(), "First"); c.Reason != "NotYet" || !next.Equal(w.savedAt.Add(time.Second)) {
			t.Fatalf("in the second after a save the record has %s, and the next pass is at %s", c.Reason, next)
		}
	}
	w.clock.SetTime(w.savedAt.Add(time.Second))
	w.mustPass()
	if c := condition(w.store.load(), "First"); c.Reason != "Paused" {
		t.Errorf("a second after the last save the record has %s", c.Reason)
	}
	w.savedAt, s.Hold = w.clock.Now().Add(time.Hour), "" // the clock has jumped back
	w.mustPass()
	if c := condition(w.store.load(), "First"); c.Reason != "NotYet" {
		t.Errorf("after the clock has jumped back the record has %s", c.Reason)
	}
}

func TestReason_that_changes_is_saved_at_once(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Wait("NotYet", "a while"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(noon.Add(130 * time.Second))
	s.setResult("First", engine.Wait("Unhealthy", "etcd is degraded"))
	next, err := w.pass()
	if err != nil {
		t.Fatal(err)
	}
	c := w.store.load().Conditions[0]
	if c.Reason != "Unhealthy" || c.Message != "etcd is degraded" || !c.LastProbeTime.Equal(&metav1.Time{Time: w.clock.Now().Truncate(time.Second)}) {
		t.Errorf("the record has %+v", c)
	}
	if !c.LastTransitionTime.Equal(c.StartTime) {
		t.Errorf("the status did not change, and its transition time did: %+v", c)
	}
	if want := c.LastProbeTime.Add(maxIdle); !next.Equal(want) {
		t.Errorf("after a save the next pass is at %s, want %s", next, want)
	}
}

func TestErrors_are_retried_with_backoff(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	var at []time.Time
	s.setDo("First", func(run engine.Run) (engine.Result, error) {
		at = append(at, run.Now)
		return engine.Result{}, errors.New("no answer")
	})
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(time.Hour)) })
	if first := at[1].Sub(at[0]); first != time.Second {
		t.Errorf("the first retry is after %s", first)
	}
	for i := 2; i < len(at); i++ {
		delay, before := at[i].Sub(at[i-1]), at[i-1].Sub(at[i-2])
		if delay < before && at[i].Sub(at[0]) < maxIdle-time.Second || delay > maxIdle { // a heartbeat is a pass of its own
			t.Errorf("retry %d comes after %s, and the one before came after %s", i, delay, before)
		}
	}
	if len(at) < 15 || len(at) > 40 {
		t.Errorf("tried %d times in an hour", len(at))
	}
	c := w.store.load().Conditions[0]
	if c.Status != "Unknown" || c.Reason != "CannotObserve" || !strings.HasSuffix(c.Message, "no answer") || c.CompleteTime != nil {
		t.Errorf("the record has %+v", c)
	}

	s.setResult("First", engine.Done("at last"))
	w.run()
	if got := lines(w.store.load())[0]; got != "First True Done" {
		t.Errorf("after the errors the step ends with %q", got)
	}
}

func TestWaitFor_requests_an_earlier_pass(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after, want time.Duration
	}{
		"soon":                   {20 * time.Second, 20 * time.Second},
		"later than the maximum": {time.Hour, maxIdle},
		"now":                    {0, time.Second},
		"time in the past":       {-time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			w.clock.SetTime(noon.Truncate(time.Second))
			s.setResult("First", engine.WaitFor(tc.after, "NotYet", "a while"))
			next, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			if got := next.Sub(w.clock.Now()); got != tc.want {
				t.Errorf("the next pass is in %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOnTransition_is_called_with_what_was_saved(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("Commit", engine.Wait("Requested", "requested it"))
	next, err := w.pass()
	if err != nil {
		t.Fatal(err)
	}
	w.advance(next)
	s.setResult("Commit", engine.Done("accepted"))
	s.setResult("Last", engine.Fail("Broken", "it is broken"))
	w.store.plan = only(w.store.saves+1, refuseSave) // not saved, so not reported
	w.run()
	var got []string
	for _, transition := range w.transitions {
		from, to := transition.From, transition.To
		got = append(got, fmt.Sprintf("%s: %s%s -> %s%s", to.Type, from.Status, from.Reason, to.Status, to.Reason))
		if from.Type != "" && from.Type != to.Type {
			t.Errorf("a transition of %s from %s", to.Type, from.Type)
		}
		if to.LastProbeTime == nil || to.LastProbeTime.Before(to.StartTime) {
			t.Errorf("reported %+v, which was not saved", to)
		}
	}
	want := []string{
		"First:  -> FalseStarted",
		"First: FalseStarted -> TrueDone",
		"Commit:  -> FalseStarted",
		"Commit: FalseStarted -> FalseRequested",
		"Commit: FalseRequested -> TrueDone",
		"Last:  -> FalseStarted",
		"Last: FalseStarted -> FalseBroken",
		"FirstCleaned:  -> FalseStarted",
		"FirstCleaned: FalseStarted -> TrueDone",
		"LastCleaned:  -> FalseStarted",
		"LastCleaned: FalseStarted -> TrueDone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transitions (-want +got):\n%s", diff)
	}
}

func TestPass_that_is_cancelled_records_nothing(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]engine.Result{
		"step done":               engine.Done("so it is"),
		"step failed":             engine.Fail("Broken", "it is broken"),
		"step with a zero result": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			ctx, cancel := context.WithCancel(t.Context())
			s.setDo("First", func(engine.Run) (engine.Result, error) { cancel(); return answer, nil })
			e := &engine.Engine{Clock: w.clock, Save: w.store.save}
			returned, next, err := e.Pass(ctx, s.book(), w.store.load(), s.Constraints)
			if !errors.Is(err, context.Canceled) || !next.IsZero() {
				t.Errorf("next pass %s, error %v", next, err)
			}
			for _, record := range [][]string{lines(returned), lines(w.store.load())} {
				if diff := cmp.Diff([]string{"First False Started …"}, record); diff != "" {
					t.Errorf("the record (-want +got):\n%s", diff)
				}
			}
			s.setResult("First", engine.Done("so it is"))
			w.run()
			if len(w.calls) == 0 || w.calls[0] != "First" {
				t.Errorf("after the cancelled call, calls of %v", w.calls)
			}
		})
	}
}

func TestMessage_is_bounded_and_valid_UTF8(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"far too long":           strings.Repeat("é", 5000),
		"not UTF-8":              "the proxy said \xff\xfe\x00",
		"cut within a character": strings.Repeat("x", 2047) + "éé",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.setResult("First", engine.Wait("NotYet", "%s", message))
			scheduleEvery(w, 10*time.Second, maxIdle, func() {})
			w.runUntil(func() bool { return w.clock.Now().After(noon.Add(4 * time.Minute)) })
			if w.store.saves != 2 {
				t.Errorf("%d saves of a message that does not change, want 2", w.store.saves)
			}
			if got := w.store.load().Conditions[0].Message; len(got) > 2100 || strings.HasSuffix(got, "\uFFFD…") {
				t.Errorf("saved as %d bytes, ending with %q", len(got), got[len(got)-8:])
			}
		})
	}
}

func TestPass_changes_neither_its_record_nor_saved_ones(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Wait("NotYet", "a while"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	given := w.store.load()
	w.clock.SetTime(noon.Add(time.Hour))
	s.setResult("First", engine.Done("so it is"))
	renameStep(s, "First")
	var saved, asSaved []history.Record
	save := func(ctx context.Context, record history.Record) error {
		saved, asSaved = append(saved, record), append(asSaved, *record.DeepCopy())
		return w.store.save(ctx, record)
	}
	if _, _, err := (&engine.Engine{Clock: w.clock, Save: save}).Pass(t.Context(), s.book(), given, s.Constraints); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asSaved, saved); diff != "" || len(saved) == 0 {
		t.Errorf("what was given to Save, as it was then (-) and is now (+):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"First False NotYet …"}, lines(given)); diff != "" {
		t.Errorf("the record that was handed in (-want +got):\n%s", diff)
	}
}

func TestSkip_and_Repeatable_cost_no_write(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*script)
		saves  int
		called string // when the first answer of Third is saved
	}{
		"neither":    {change: func(*script) {}, saves: 5, called: "First=Done Commit=Done Third=Started"},
		"Skip":       {change: func(s *script) { s.at("First").Skip = engine.Skip("NoAction", "") }, saves: 4, called: "First=NoAction Commit=Done Third=Started"},
		"Repeatable": {change: func(s *script) { s.at("Third").Repeatable = true }, saves: 4, called: "First=Done Commit=Started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Third")
			tc.change(s)
			var called []string
			done := false
			s.setDo("Third", func(engine.Run) (engine.Result, error) {
				if called == nil {
					for _, c := range w.store.load().Conditions {
						called = append(called, c.Type+"="+c.Reason)
					}
				}
				if done {
					return engine.Done("so it is"), nil
				}
				return engine.Wait("NotYet", "a while"), nil
			})
			w.mustPass()
			if c := condition(w.store.load(), "Third"); c.Reason != "NotYet" || c.StartTime == nil {
				t.Errorf("the first answer is saved as %+v", c)
			}
			done = true
			w.mustPass()
			if c := condition(w.store.load(), "Third"); c.Reason != engine.ReasonDone || w.store.saves != tc.saves || strings.Join(called, " ") != tc.called {
				t.Errorf("%d saves, want %d; Third was called with the record %s, and has %s", w.store.saves, tc.saves, called, c.Reason)
			}
		})
	}
}
