// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// deadlines lists all kinds of deadlines. Each entry runs a script until it waits in the step, and returns the
// deadline.
var deadlines = map[string]struct {
	step, reason string
	set          func(w *world, s *script)
}{
	"the window, in a step before the committing one": {"First", "WindowMissed", func(_ *world, s *script) {
		s.CommitBy = noon.Add(10 * time.Minute)
	}},
	"the window, in the committing step": {"Commit", "WindowMissed", func(_ *world, s *script) {
		s.CommitBy = noon.Add(10 * time.Minute)
	}},
	"FailAfter, before the commit": {"First", "TimedOut", func(_ *world, s *script) {
		s.CommitBy = noon.Add(48 * time.Hour)
		s.at("First").FailAfter = 10 * time.Minute
	}},
	"FailAfter, after the commit and the window": {"Last", "TimedOut", func(_ *world, s *script) {
		s.CommitBy = noon.Add(time.Minute)
		s.at("Last").FailAfter = 10 * time.Minute
	}},
	"the window, where the runbook names the reason": {"First", "Expired", func(_ *world, s *script) {
		s.CommitBy, s.MissedAs = noon.Add(10*time.Minute), "Expired"
	}},
	"FailAfter, where the step names the reason": {"Last", "UnhealthyAfterUpgrade", func(_ *world, s *script) {
		s.at("Last").FailAfter, s.at("Last").FailReason = 10*time.Minute, "UnhealthyAfterUpgrade"
	}},
	"FailBy, before the commit": {"First", "TimedOut", func(_ *world, s *script) {
		s.at("First").FailBy = noon.Add(10 * time.Minute)
	}},
	"FailBy, after the commit, where the step names the reason": {"Last", "UnpausingPoolsExpired", func(_ *world, s *script) {
		s.at("Last").FailBy, s.at("Last").FailReason = noon.Add(10*time.Minute), "UnpausingPoolsExpired"
	}},
	"FailBy, before FailAfter": {"Last", "TimedOut", func(_ *world, s *script) {
		s.at("Last").FailBy, s.at("Last").FailAfter = noon.Add(10*time.Minute), time.Hour
	}},
	"FailAfter, in a final step": {"LastFinally", "TimedOut", func(_ *world, s *script) {
		s.Finally = append(s.Finally, s.step("LastFinally"))
		s.at("LastFinally").FailAfter = 10 * time.Minute
	}},
	"FailAfter, in the clean-up": {"FirstCleaned", "TimedOut", func(_ *world, s *script) {
		s.setResult("First", engine.Fail("Broken", "it is broken"))
		s.at("FirstCleaned").FailAfter = 10 * time.Minute
	}},
}

func TestDeadline_stops_the_step(t *testing.T) {
	t.Parallel()
	reached := map[string]struct {
		so     func(s *script, step string)
		status metav1.ConditionStatus
		reason string // by default the deadline's
		over   bool
	}{
		"not reached":             {func(s *script, step string) { s.setReached(step, false, nil) }, metav1.ConditionFalse, "", true},
		"without Reached":         {func(s *script, step string) { s.at(step).Reached = nil }, metav1.ConditionFalse, "", true},
		"reached":                 {func(s *script, step string) { s.setReached(step, true, nil) }, metav1.ConditionTrue, engine.ReasonDone, true},
		"Reached fails":           {func(s *script, step string) { s.setReached(step, false, errStore) }, metav1.ConditionUnknown, "CannotObserve", false},
		"Reached fails with true": {func(s *script, step string) { s.setReached(step, true, errStore) }, metav1.ConditionUnknown, "CannotObserve", false},
	}
	for name, deadline := range deadlines {
		for how, is := range reached {
			if deadline.step == "Commit" && how == "without Reached" {
				continue // Validate rejects it
			}
			for _, off := range []time.Duration{-9 * time.Minute, -time.Second, -1, 0, 1, time.Second, 24 * time.Hour} {
				t.Run(name+"/"+how+"/"+off.String(), func(t *testing.T) {
					t.Parallel()
					w, s := newScript(t, "First", "Commit", "Last")
					deadline.set(w, s)
					s.setResult(deadline.step, engine.Wait("NotYet", "a while"))
					if _, err := w.pass(); err != nil {
						t.Fatal(err)
					}
					s.observed = recordCall(new([]string), "", engine.Result{}, nil) // the cache is behind
					is.so(s, deadline.step)
					due := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints).Deadline
					if due.Before(noon.Add(9*time.Minute)) || due.After(noon.Add(11*time.Minute)) {
						t.Fatalf("Summarize returns the deadline %s", due)
					}
					w.calls = nil
					w.clock.SetTime(due.Add(off))
					next, err := w.pass()
					if err != nil {
						t.Fatal(err)
					}
					c := condition(w.store.load(), deadline.step)
					if off < 0 {
						if diff := cmp.Diff([]string{deadline.step}, w.calls); diff != "" || c.CompleteTime != nil {
							t.Errorf("before the deadline (-want +got calls):\n%s%+v", diff, c)
						}
						if next.After(due) {
							t.Errorf("the next pass is at %s, after the deadline at %s", next, due)
						}
						return
					}
					calls := 0
					if deadline.step == "FirstCleaned" { // the deadline bounds waiting, not trying
						calls = 1
					}
					if got := count(w.calls, deadline.step); got != calls {
						t.Errorf("%s was called %d times after its deadline, want %d", deadline.step, got, calls)
					}
					want := is.reason
					if want == "" {
						want = deadline.reason
					}
					status, over := is.status, is.over
					if status == metav1.ConditionUnknown && deadline.step != "Commit" { // only the commit is asked without end
						status, want, over = metav1.ConditionFalse, deadline.reason, true
						if !strings.HasSuffix(c.Message, "; CouldNotBeDetermined: "+errStore.Error()) {
							t.Errorf("the message does not say why: %s", c.Message)
						}
					}
					if c.Status != status || c.Reason != want || (c.CompleteTime != nil) != over {
						t.Errorf("after the deadline: %+v, want %s %s", c, status, want)
					}
				})
			}
		}
	}
}

// What a step waits for may hold although another update has replaced this one while no process ran.
func TestDeadline_after_the_commit_asks_the_gates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gate engine.Result
		err  error
		want string
	}{
		"the gate passes":              {gate: engine.Done("open"), want: "Last True Done"},
		"the gate is closed":           {gate: engine.Wait("Shut", "shut"), want: "Last True Done"},
		"the gate cannot be evaluated": {err: errStore, want: "Last True Done"},
		"the gate fails":               {gate: engine.Fail("Superseded", "replaced"), want: "Last False Superseded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			s.setResult("Last", engine.Wait("NotYet", "a while"))
			gate, failed := engine.Done("open"), error(nil)
			s.at("Last").FailAfter = 10 * time.Minute
			s.at("Last").Gates = []engine.Gate{{Name: "NotSuperseded", Check: func(ctx, engine.Run) (engine.Result, error) { return gate, failed }}}
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			gate, failed = tc.gate, tc.err
			s.setReached("Last", true, nil)
			w.clock.SetTime(noon.Add(time.Hour))
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := lines(w.store.load())[2]; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	w, s := newScript(t, "First", "Commit", "Last")
	s.CommitBy = noon.Add(10 * time.Minute)
	s.setResult("First", engine.Wait("NotYet", "a while"))
	s.at("Last").Gates = []engine.Gate{{Name: "NotSuperseded", Check: func(ctx, engine.Run) (engine.Result, error) { return engine.Fail("Superseded", "replaced"), nil }}}
	w.run()
	if got, want := lines(w.store.load())[0], "First False WindowMissed"; got != want {
		t.Errorf("before the commit: got %q, want %q", got, want)
	}
}

func TestDeadline_retries_errors_of_Reached(t *testing.T) {
	t.Parallel()
	for so, want := range map[bool]string{true: "Commit True Done", false: "Commit False WindowMissed"} {
		w, s := newScript(t, "First", "Commit")
		s.CommitBy = noon.Add(10 * time.Minute)
		s.setResult("Commit", engine.Wait("Requested", "requested it"))
		calls := 0
		s.reached["Commit"] = func() (bool, error) {
			if w.clock.Now().Before(s.CommitBy) { // called because the record is empty
				return false, nil
			}
			if calls++; w.clock.Now().After(noon.Add(time.Hour)) {
				return so, nil
			}
			return false, errStore
		}
		w.run()
		if got := lines(w.store.load())[1]; got != want {
			t.Errorf("%q in the end, want %q", got, want)
		}
		if calls < 10 || calls > 60 {
			t.Errorf("called %d times in an hour, want growing delays", calls)
		}
	}
}

func TestDeadline_is_met_exactly(t *testing.T) {
	t.Parallel()
	for name, deadline := range deadlines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			deadline.set(w, s)
			s.setResult(deadline.step, engine.WaitFor(7*time.Minute, "NotYet", "a while"))
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			due := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints).Deadline
			var seen *metav1.Time
			w.runUntil(func() bool {
				c := condition(w.store.load(), deadline.step)
				if c.CompleteTime == nil {
					seen = c.LastProbeTime
				}
				return c.CompleteTime != nil
			})
			c := condition(w.store.load(), deadline.step)
			if !c.CompleteTime.Equal(&metav1.Time{Time: due.Truncate(time.Second)}) {
				t.Errorf("aborted at %s, the deadline was at %s", c.CompleteTime, due)
			}
			if want := "; last seen at " + seen.UTC().Format(time.RFC3339) + ": a while"; !strings.HasSuffix(c.Message, want) {
				t.Errorf("the message does not show what it waited for, and when: %q lacks %q", c.Message, want)
			}
		})
	}
}

// A deadline bounds waiting, never trying: nothing may have run before it.
func TestDeadline_of_the_cleanup_tries_once_more(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result engine.Result
		err    error
		want   string // status, reason, and message
	}{
		"done":    {result: engine.Done("withdrawn"), want: "True Done withdrawn"},
		"skipped": {result: engine.Skip("Unneeded", "nothing to do"), want: "True Unneeded nothing to do"},
		"waiting": {result: engine.Wait("NotYet", "later"), want: "False TimedOut not completed within 10m0s; last seen at 2026-03-01T12:00:00Z: a while"},
		"error":   {err: errStore, want: "False TimedOut not completed within 10m0s; " + errStore.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			deadlines["FailAfter, in the clean-up"].set(w, s)
			s.setResult("FirstCleaned", engine.Wait("NotYet", "a while"))
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			w.calls = nil
			w.clock.SetTime(noon.Add(24 * time.Hour))
			s.setDo("FirstCleaned", func(engine.Run) (engine.Result, error) { return tc.result, tc.err })
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			c := condition(w.store.load(), "FirstCleaned")
			if got := fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message); got != tc.want || count(w.calls, "FirstCleaned") != 1 {
				t.Errorf("it is called %d times and ends %q, want %q", count(w.calls, "FirstCleaned"), got, tc.want)
			}
		})
	}
}

// Every pass of every test is a restart: each has a new engine.
func TestDeadline_with_the_operator_down_from_any_time(t *testing.T) {
	t.Parallel()
	want, saves, _ := runUndisturbed(t)
	for _, down := range []time.Duration{10 * time.Minute, 31 * time.Minute, 24 * time.Hour} {
		t.Run("for "+down.String(), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= saves; n++ {
				c := newCluster(t)
				c.store.plan = only(n, crashAfter)
				c.runUntil(func() bool { return c.store.saves == n })
				requested := c.Desired == target
				c.pause(down)
				c.run()
				if requested || c.clock.Now().Before(c.window) || down == 10*time.Minute {
					if diff := cmp.Diff(want, c.end()); diff != "" {
						t.Errorf("down after save %d (-undisturbed +disturbed):\n%s", n, diff)
					}
					continue
				}
				c.assertAborted("WindowMissed")
			}
		})
	}
}

// assertAborted checks that an upgrade was aborted before its commit, for that reason.
func (c *cluster) assertAborted(reason string) {
	c.t.Helper()
	summary := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints())
	switch {
	case summary.State != engine.Failed || summary.Committed || summary.Failure.Reason != reason:
		c.t.Errorf("want an upgrade aborted for %s, got %v", reason, lines(c.store.load()))
	case c.Desired != "" || c.ExtraNode || c.Accepted || c.Notified[len(c.Notified)-1] != "failed":
		c.t.Errorf("not cleaned up: %+v", c.facts)
	}
}

func TestClock_may_jump_at_every_save(t *testing.T) {
	t.Parallel()
	want, saves, _ := runUndisturbed(t)
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Hour, -2 * time.Second, -1, time.Second, 6 * time.Minute} {
		t.Run("by "+jump.String(), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= saves; n += 2 {
				c := newCluster(t)
				c.runUntil(func() bool { return c.store.saves >= n })
				for i := range c.events { // the cluster follows the clock
					c.events[i].at = c.events[i].at.Add(jump)
				}
				c.clock.SetTime(c.clock.Now().Add(jump))
				c.run()
				if diff := cmp.Diff(want, c.end()); diff != "" {
					t.Errorf("a jump after save %d (-undisturbed +disturbed):\n%s", n, diff)
				}
			}
		})
	}
}

func TestClock_that_jumps_back_reopens_no_finished_step(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.CommitBy = noon.Add(10 * time.Minute)
	s.setResult("First", engine.Wait("NotYet", "a while"))
	s.setResult("FirstCleaned", engine.Wait("NotYet", "a while"))
	w.runUntil(func() bool { return isAborted(s.book(), w.store.load()) })
	w.clock.SetTime(noon)
	s.setResult("FirstCleaned", engine.Done("clean"))
	w.calls = nil
	w.run()
	if diff := cmp.Diff([]string{"FirstCleaned", "LastCleaned"}, w.calls); diff != "" {
		t.Errorf("after the window was missed the clock jumped back into it; calls (-want +got):\n%s", diff)
	}
}

// After a jump back, the times in the record are in the future. The record is saved at once, and
// errors are retried with delays that grow from now on.
func TestClock_that_jumps_back_keeps_heartbeats_and_delays(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.setError("First", errors.New("no answer"))
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(20 * time.Minute)) })
	w.clock.SetTime(noon.Add(-10 * time.Hour))
	saves := w.store.saves
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	c := condition(w.store.load(), "First")
	if w.store.saves != saves+1 || c.LastProbeTime.After(w.clock.Now()) || c.LastTransitionTime.After(w.clock.Now()) {
		t.Errorf("%d saves; the record still speaks of the future: %+v", w.store.saves-saves, c)
	}
	w.calls = nil
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(-9 * time.Hour)) })
	if len(w.calls) > 50 {
		t.Errorf("retried %d times within an hour", len(w.calls))
	}
}

func TestSlowAfter_is_reported_and_the_step_continues(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.at("First").SlowAfter = 7 * time.Minute
	s.setResult("First", engine.Wait("NotYet", "a while"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	slowAt := condition(w.store.load(), "First").StartTime.Add(7 * time.Minute)
	w.runUntil(func() bool { return !w.clock.Now().Before(slowAt) })
	if !w.clock.Now().Equal(slowAt) {
		t.Errorf("the first pass with a slow step is at %s, it was slow at %s", w.clock.Now(), slowAt)
	}
	saves := w.store.saves
	for range 2 {
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if w.store.saves != saves+1 {
		t.Errorf("that it is slow was saved %d times, want once", w.store.saves-saves)
	}
	record := w.store.load()
	if !engine.Summarize(s.book(), record, slowAt, s.Constraints).Slow || engine.Summarize(s.book(), record, slowAt.Add(-1), s.Constraints).Slow {
		t.Error("Assess does not say that the step is slow from SlowAfter on")
	}
	s.setResult("First", engine.Done("at last"))
	w.run()
	if got := lines(w.store.load())[0]; got != "First True Done" {
		t.Errorf("a slow step ends with %q", got)
	}
}

// count returns how often a step was called.
func count(calls []string, step string) int {
	n := 0
	for _, call := range calls {
		if call == step {
			n++
		}
	}
	return n
}
