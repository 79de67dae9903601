// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The first change of a reason is saved at once, and then one a minute at most.
func TestReason_that_alternates(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string][]func() (engine.Result, error){
		"between two reasons": {
			func() (engine.Result, error) { return engine.Wait("A", "a"), nil },
			func() (engine.Result, error) { return engine.Wait("B", "b"), nil },
		},
		"between an answer and an error": {
			func() (engine.Result, error) { return engine.Wait("A", "a"), nil },
			func() (engine.Result, error) { return engine.Result{}, errNoAnswer },
		},
		"between three reasons": {
			func() (engine.Result, error) { return engine.Wait("A", "a"), nil },
			func() (engine.Result, error) { return engine.Wait("B", "b"), nil },
			func() (engine.Result, error) { return engine.Wait("C", "c"), nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			call := 0
			s.setDo("First", func(engine.Run) (engine.Result, error) {
				call++
				return answers[call%len(answers)]()
			})
			w.mustPass()
			saves := w.store.saves
			w.clock.SetTime(noon.Add(5 * time.Second))
			w.mustPass()
			if w.store.saves != saves+1 {
				t.Errorf("%d saves of the first change, want it saved at once", w.store.saves-saves)
			}
			saves = w.store.saves
			scheduleEvery(w, 5*time.Second, 10*time.Minute, func() {})
			w.runUntil(func() bool { return w.clock.Now().After(noon.Add(10 * time.Minute)) })
			if got := w.store.saves - saves; got > 10 || got < 4 {
				t.Errorf("%d saves in ten minutes in which the reason changed every five seconds", got)
			}
		})
	}
}

func TestReason_whose_last_change_is_never_lost(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	for i, reason := range []string{"A", "B", "C"} {
		w.clock.SetTime(noon.Add(time.Duration(i) * time.Second))
		s.setResult("First", engine.Wait(reason, "a while"))
		w.mustPass()
	}
	if got := condition(w.store.load(), "First").Reason; got != "B" {
		t.Errorf("the record holds %s; the second change within a minute is to be saved later", got)
	}
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(62 * time.Second)) })
	if got := condition(w.store.load(), "First").Reason; got != "C" {
		t.Errorf("a minute later the record holds %s", got)
	}
}

func TestEngine_saves_as_often_as_it_is_set(t *testing.T) {
	t.Parallel()
	const never = -1
	for name, tc := range map[string]struct {
		heartbeat, messages time.Duration
		want                int // saves in an hour of a new message every ten seconds
		wantQuiet           int // in an hour without changes
	}{
		"by default":             {0, 0, 60, 12},
		"no heartbeat":           {never, 0, 60, 0},
		"no messages":            {0, never, 12, 12},
		"neither":                {never, never, 0, 0},
		"a heartbeat of its own": {10 * time.Minute, never, 6, 6},
		"messages rarely":        {never, 10 * time.Minute, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			saves := func(message func(at time.Duration) string) int {
				w, s := newScript(t, "First", "Commit")
				n, at := 0, time.Duration(0)
				e := &engine.Engine{Clock: w.clock, Heartbeat: tc.heartbeat, MessageInterval: tc.messages, Save: func(ctx context.Context, r history.Record) error {
					n++
					return w.store.save(ctx, r)
				}}
				s.setDo("First", func(engine.Run) (engine.Result, error) { return engine.Wait("NotYet", "%s", message(at)), nil })
				for ; at <= time.Hour; at += 10 * time.Second {
					w.clock.SetTime(noon.Truncate(time.Second).Add(at))
					_, next, err := e.Pass(t.Context(), s.book(), w.store.load(), s.Constraints)
					if wait := next.Sub(w.clock.Now()); err != nil || wait <= 0 || wait > maxIdle {
						t.Fatalf("the next pass is in %s, %v", wait, err)
					}
					if at == 0 {
						n = 0
					}
				}
				return n
			}
			if got := saves(func(at time.Duration) string { return at.String() }); got != tc.want {
				t.Errorf("%d saves in an hour, want %d", got, tc.want)
			}
			if got := saves(func(time.Duration) string { return "a while" }); got != tc.wantQuiet {
				t.Errorf("%d saves in a quiet hour, want %d", got, tc.wantQuiet)
			}
		})
	}
}

func TestWaitUntil_waits_without_a_write(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	until := noon.Truncate(time.Second).Add(48 * time.Hour)
	s.setDo("First", func(run engine.Run) (engine.Result, error) {
		if run.Now.Before(until) {
			return engine.WaitUntil(until, "Scheduled", "starts at %s", until), nil
		}
		return engine.Done("it is time"), nil
	})
	next, err := func() (time.Time, error) {
		e := &engine.Engine{Clock: w.clock, Save: w.store.save}
		_, next, err := e.Pass(t.Context(), s.book(), w.store.load(), s.Constraints)
		return next, err
	}()
	if err != nil || !next.Equal(until) {
		t.Fatalf("the next pass is at %s, %v, want it at %s", next, err, until)
	}
	saves := w.store.saves
	for at := time.Minute; at < 47*time.Hour; at += 7 * time.Minute { // whatever happens in between
		w.clock.SetTime(noon.Add(at))
		e := &engine.Engine{Clock: w.clock, Save: w.store.save}
		if _, next, err := e.Pass(t.Context(), s.book(), w.store.load(), s.Constraints); err != nil || !next.Equal(until) {
			t.Fatalf("after %s the next pass is at %s, %v, want it at %s", at, next, err, until)
		}
	}
	if w.store.saves != saves {
		t.Errorf("%d saves while it waits for a time", w.store.saves-saves)
	}
	s.CommitBy = noon.Add(47*time.Hour + 30*time.Minute)
	e := &engine.Engine{Clock: w.clock, Save: w.store.save}
	if _, next, err := e.Pass(t.Context(), s.book(), w.store.load(), s.Constraints); err != nil || !next.Equal(s.CommitBy) {
		t.Errorf("the next pass is at %s, %v, after the deadline %s", next, err, s.CommitBy)
	}
	s.CommitBy = time.Time{}
	w.clock.SetTime(until)
	w.run()
	if got := lines(w.store.load())[0]; got != "First True Done" {
		t.Errorf("in time: %q", got)
	}
}

func TestError_keeps_the_last_answer(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.CommitBy = noon.Add(30 * time.Minute)
	s.at("Commit").FailReason = "TargetRefused"
	s.setResult("Commit", engine.Wait("TargetRefused", "the signature is missing"))
	w.mustPass()
	s.setError("Commit", errors.New("no answer"))
	for i := range 3 {
		w.clock.SetTime(noon.Add(time.Duration(i+2) * time.Minute))
		w.mustPass()
	}
	c := condition(w.store.load(), "Commit")
	if want := "no answer; last seen before 2026-03-01T12:02:00Z: the signature is missing"; c.Message != want || c.Reason != "CannotObserve" || c.Status != "Unknown" {
		t.Errorf("the condition is %+v", c)
	}
	if diff := cmp.Diff(&history.StepAnswer{Reason: "TargetRefused", Message: "the signature is missing"}, c.LastAnswer); diff != "" {
		t.Errorf("the last answer (-want +got):\n%s", diff)
	}
	w.clock.SetTime(s.CommitBy)
	w.mustPass()
	if c := condition(w.store.load(), "Commit"); c.Reason != "TargetRefused" || !strings.HasSuffix(c.Message, "last seen before 2026-03-01T12:02:00Z: the signature is missing") {
		t.Errorf("at the deadline: %+v", c)
	}
}

func TestError_is_over(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setResult("First", engine.Wait("NotYet", "a while"))
	w.mustPass()
	for i, do := range []func(){
		func() { s.setError("First", errNoAnswer) },
		func() { s.setResult("First", engine.Wait("NotYet", "a while longer")) },
	} {
		do()
		w.clock.SetTime(noon.Add(time.Duration(i+1) * 2 * time.Minute))
		w.mustPass()
	}
	if c := condition(w.store.load(), "First"); c.LastAnswer != nil || c.Message != "a while longer" {
		t.Errorf("the condition is %+v", c)
	}
}

// That the state of a step became unknown, or is known again, is no change of what it waits for.
func TestError_keeps_the_time_of_the_reason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, after engine.Result
		want         int // the minute of the reason; 0 for the first reason
	}{
		"the first reason":  {first: engine.Wait("Busy", "a node"), after: engine.Wait("Busy", "another node")},
		"a later reason":    {first: engine.Wait("Early", "it is"), after: engine.Wait("Busy", "a node"), want: 2},
		"no reason so far":  {after: engine.Wait("Busy", "a node"), want: 6},
		"another afterward": {first: engine.Wait("Busy", "a node"), after: engine.Wait("Late", "it is"), want: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			pass := func(minute int) { w.clock.SetTime(noon.Add(time.Duration(minute) * time.Minute)); w.mustPass() }
			before := tc.after
			if tc.want == 6 {
				before = tc.first
			}
			if s.setResult("First", tc.first); tc.first.IsZero() {
				s.setError("First", errNoAnswer)
			}
			pass(0)
			if !before.IsZero() {
				s.setResult("First", before)
				pass(2)
			}
			s.setError("First", errNoAnswer)
			pass(4)
			if c := condition(w.store.load(), "First"); c.Reason != "CannotObserve" {
				t.Errorf("%+v", c)
			}
			s.setError("First", nil)
			s.setResult("First", tc.after)
			pass(6)
			c := condition(w.store.load(), "First")
			if c.Reason != tc.after.Reason() || (c.ReasonTime == nil) != (tc.want == 0) {
				t.Fatalf("%+v", c)
			}
			if want := noon.Truncate(time.Second).Add(time.Duration(tc.want) * time.Minute); tc.want > 0 && !c.ReasonTime.Time.Equal(want) {
				t.Errorf("the reason is of %s, want %s", c.ReasonTime, want)
			}
		})
	}
}

// A step that uses up its time leaves a keep-alive its own.
func TestKeepAlive_has_a_time_of_its_own(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, renewals := bubble.Now(), 0
		e := &engine.Engine{Clock: bubble, Save: func(context.Context, history.Record) error { return nil }}
		hang := func(ctx context.Context, _ engine.Run) (engine.Result, error) {
			<-ctx.Done()
			return engine.Result{}, ctx.Err()
		}
		book := engine.Runbook{Steps: []engine.Step{{
			Name: "Commit", Commit: committing(always(false)), Doc: "It hangs.", Do: hang,
			KeepAlive: []engine.KeepAlive{{Name: "Hangs", Renew: hang}, {Name: "Lease", Renew: func(ctx context.Context, _ engine.Run) (engine.Result, error) {
				renewals++
				return engine.Done(""), ctx.Err()
			}}},
		}}}
		record, _, err := e.Pass(t.Context(), book, history.Record{}, engine.Constraints{})
		if err != nil || renewals != 1 || strings.Count(record.Conditions[0].Message, "also: ") != 1 {
			t.Errorf("%d renewals, %v, %+v", renewals, err, record.Conditions)
		}
		if took := bubble.Since(began); took != 90*time.Second {
			t.Errorf("the pass took %s", took)
		}
	})
}

func TestKeepAlive_is_renewed_whatever_blocks_the_step(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]func(s *script){
		"a hold": func(s *script) { s.Hold = "paused" },
		"a gate": func(s *script) {
			s.at("Commit").Gates = []engine.Gate{{Name: "Gate", Check: recordCall(new([]string), "", engine.Wait("Shut", "shut"), nil)}}
		},
		"a deadline that cannot be decided": func(s *script) { s.CommitBy = noon; s.reached["Commit"] = failsAfterFirst() },
		"request without an observed effect": func(s *script) {
			s.observed = recordCall(new([]string), "", engine.Wait("Requested", "requested"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "Commit", "Last")
			var renewals []string
			s.at("Commit").KeepAlive = []engine.KeepAlive{{Name: "Lease", Renew: recordCall(&renewals, "renewed", engine.Done(""), nil)}}
			block(s)
			w.mustPass()
			if diff := cmp.Diff([]string{"renewed"}, renewals); diff != "" || len(w.calls) > 0 {
				t.Errorf("calls of %v; renewals (-want +got):\n%s\n%q", w.calls, diff, lines(w.store.load()))
			}
		})
	}
}

// failsAfterFirst returns false when the empty record is compared with the cluster, and then
// errors.
func failsAfterFirst() func() (bool, error) {
	calls := 0
	return func() (bool, error) {
		if calls++; calls > 1 {
			return false, errStore
		}
		return false, nil
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	item := func(name, status, message string) history.StepItem {
		return history.StepItem{Name: name, Status: status, Message: message}
	}
	var many []history.StepItem
	for i := range 100 {
		many = append(many, item(fmt.Sprintf("hook-%03d", i), "Running", ""))
	}
	for name, tc := range map[string]struct {
		items, want []history.StepItem
	}{
		"two":              {[]history.StepItem{item("a", "Running", "for a while"), item("b", "Failed", "")}, []history.StepItem{item("a", "Running", "for a while"), item("b", "Failed", "")}},
		"too many":         {many, many[:64]},
		"name repeated":    {[]history.StepItem{item("a", "Running", ""), item("a", "Failed", "")}, []history.StepItem{item("a", "Running", "")}},
		"without a name":   {[]history.StepItem{item("", "Running", ""), item("b", "Failed", "")}, []history.StepItem{item("b", "Failed", "")}},
		"without a status": {[]history.StepItem{item("a", "", "")}, nil},
		"a long message":   {[]history.StepItem{item("a", "Running", strings.Repeat("é", 500))}, []history.StepItem{item("a", "Running", strings.Repeat("é", 126)+"…")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.setResult("First", engine.Wait("HooksRunning", "a while").WithItems(tc.items...))
			w.mustPass()
			if diff := cmp.Diff(tc.want, condition(w.store.load(), "First").Items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestItems_change_like_a_message_until_they_end(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	n := 0
	s.setDo("First", func(engine.Run) (engine.Result, error) {
		n++
		return engine.Wait("HooksRunning", "a while").WithItems(history.StepItem{Name: "hook", Status: "Running", Message: fmt.Sprint("pod ", n)}), nil
	})
	w.mustPass()
	saves := w.store.saves
	scheduleEvery(w, 5*time.Second, 5*time.Minute, func() {})
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(5 * time.Minute)) })
	if got := w.store.saves - saves; got != 5 {
		t.Errorf("%d saves in five minutes in which an item changed every five seconds", got)
	}
	w.mustPass() // the next change of a message is saved in a minute at the earliest
	s.setDo("First", func(engine.Run) (engine.Result, error) {
		return engine.Wait("HooksRunning", "a while").WithItems(history.StepItem{Name: "hook", Status: "Failed"}), nil
	})
	w.mustPass()
	if diff := cmp.Diff([]history.StepItem{{Name: "hook", Status: "Failed"}}, condition(w.store.load(), "First").Items); diff != "" {
		t.Errorf("at once when the item has ended (-want +got):\n%s", diff)
	}
	s.setDo("First", func(engine.Run) (engine.Result, error) {
		return engine.Done("done").WithItems(history.StepItem{Name: "hook", Status: "Succeeded"}), nil
	})
	w.run()
	if diff := cmp.Diff([]history.StepItem{{Name: "hook", Status: "Succeeded"}}, condition(w.store.load(), "First").Items); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

// A hold and a deadline answer for a step without calling it: what it had recorded stays.
func TestItems_stay_when_the_engine_answers(t *testing.T) {
	t.Parallel()
	running := []history.StepItem{{Name: "hook", Status: "Running"}}
	for name, tc := range map[string]struct {
		change func(*script)
		after  time.Duration
		reason string
	}{
		"hold":     {func(s *script) { s.Hold = "a freeze" }, time.Minute, "Paused"},
		"deletion": {func(s *script) { s.Cancel = "deleted" }, time.Minute, "Cancelled"},
		"deadline": {func(*script) {}, 2 * time.Hour, "TimedOut"},
		"reached":  {func(s *script) { s.reached["First"] = func() (bool, error) { return true, nil } }, 2 * time.Hour, "Done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.Steps[0].FailAfter = time.Hour
			s.setResult("First", engine.Wait("HooksRunning", "a while").WithItems(running...))
			w.mustPass()
			tc.change(s)
			w.runUntil(func() bool { return w.clock.Now().After(noon.Add(tc.after)) })
			c := condition(w.store.load(), "First")
			if diff := cmp.Diff(running, c.Items); diff != "" || c.Reason != tc.reason {
				t.Errorf("reason %s, items (-want +got):\n%s", c.Reason, diff)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for want, conditions := range map[engine.Class][]history.StepCondition{
		engine.ClassWaiting: {{}, {Status: "False", Reason: "Started"}, {Status: "True", Reason: "Done"}},
		engine.ClassUnknown: {{Status: "Unknown", Reason: "CannotObserve"}},
		engine.ClassDone:    {{Status: "True", Reason: "Done", CompleteTime: ago(0)}},
		engine.ClassSkipped: {{Status: "True", Reason: "NotConfigured", CompleteTime: ago(0)}, {Status: "Unknown", CompleteTime: ago(0)}},
		engine.ClassFailed:  {{Status: "False", Reason: "TimedOut", CompleteTime: ago(0)}, {Status: "False", Reason: "Done", CompleteTime: ago(0)}},
	} {
		for _, c := range conditions {
			if got := engine.Classify(c); got != want {
				t.Errorf("%+v is %s, want %s", c, got, want)
			}
		}
	}
}

// A step whose Do may no longer be called can return its items as they are.
func TestItems_of_a_step_at_its_deadline(t *testing.T) {
	t.Parallel()
	broken := errors.New("the cache cannot be read")
	ended := []history.StepItem{{Name: "hook", Status: "Succeeded"}}
	for name, tc := range map[string]struct {
		change func(*script)
		reason string
	}{
		"deadline": {func(*script) {}, "TimedOut"},
		"reached":  {func(s *script) { s.reached["First"] = func() (bool, error) { return true, nil } }, "Done"},
		"deletion": {func(s *script) { s.Cancel = "deleted" }, "Cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit")
			s.Steps[0].FailAfter = time.Hour
			fails := true
			s.Steps[0].Items = func(context.Context) ([]history.StepItem, error) {
				if fails {
					return nil, broken
				}
				return ended, nil
			}
			s.setResult("First", engine.Wait("HooksRunning", "a while").WithItems(history.StepItem{Name: "hook", Status: "Running"}))
			w.mustPass()
			tc.change(s)
			w.runUntil(func() bool { return w.clock.Now().After(noon.Add(61 * time.Minute)) })
			if c := condition(w.store.load(), "First"); c.CompleteTime != nil {
				t.Errorf("it has ended although its items are unknown: %+v", c)
			}
			fails = false
			w.runUntil(func() bool { return w.clock.Now().After(noon.Add(2 * time.Hour)) })
			c := condition(w.store.load(), "First")
			if diff := cmp.Diff(ended, c.Items); diff != "" || c.Reason != tc.reason {
				t.Errorf("reason %s, items (-want +got):\n%s", c.Reason, diff)
			}
		})
	}
}
