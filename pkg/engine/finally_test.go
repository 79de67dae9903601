// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// newFinally returns a script with two final steps.
func newFinally(t *testing.T) (*world, *script) {
	t.Helper()
	w, s := newScript(t, "First", "Commit", "Last")
	s.Finally = []engine.Step{s.step("Hooks"), s.step("FinishHooks")}
	return w, s
}

func TestFinally_runs_after_success_and_after_the_cleanup(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before  func(s *script)
		calls   []string
		state   engine.UpgradeState
		outcome engine.Outcome
	}{
		"success": {
			before: func(*script) {}, state: engine.Succeeded, outcome: engine.OutcomeUpgraded,
			calls: []string{"First", "Commit", "Last", "Hooks", "FinishHooks"},
		},
		"a failure before the commit": {
			before: func(s *script) { s.setResult("First", engine.Fail("Broken", "it is broken")) }, state: engine.Failed, outcome: engine.OutcomeFailed,
			calls: []string{"First", "FirstCleaned", "LastCleaned", "Hooks", "FinishHooks"},
		},
		"a failure after the commit": {
			before: func(s *script) { s.setResult("Last", engine.Fail("Broken", "it is broken")) }, state: engine.Failed, outcome: engine.OutcomeFailed,
			calls: []string{"First", "Commit", "Last", "FirstCleaned", "LastCleaned", "Hooks", "FinishHooks"},
		},
		"a failure that means skipped": {
			before: func(s *script) { s.setResult("First", engine.Fail("Suspended", "a window")) }, state: engine.Failed, outcome: engine.OutcomeSkipped,
			calls: []string{"First", "FirstCleaned", "LastCleaned", "Hooks", "FinishHooks"},
		},
		"the same after the commit": {
			before: func(s *script) { s.setResult("Last", engine.Fail("Suspended", "a window")) }, state: engine.Failed, outcome: engine.OutcomeFailed,
			calls: []string{"First", "Commit", "Last", "FirstCleaned", "LastCleaned", "Hooks", "FinishHooks"},
		},
		"a cancellation": {
			before: func(s *script) { s.Cancel = "deleted" }, state: engine.Failed, outcome: engine.OutcomeCancelled,
			calls: []string{"FirstCleaned", "LastCleaned", "Hooks", "FinishHooks"},
		},
		"a final step that fails": {
			before: func(s *script) { s.setResult("Hooks", engine.Fail("Broken", "it is broken")) }, state: engine.Succeeded, outcome: engine.OutcomeUpgraded,
			calls: []string{"First", "Commit", "Last", "Hooks", "FinishHooks"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newFinally(t)
			s.SkipReasons = []string{"Suspended"}
			tc.before(s)
			w.run()
			if diff := cmp.Diff(tc.calls, w.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints)
			if summary.State != tc.state || summary.Outcome != tc.outcome || !summary.Finished() {
				t.Errorf("the summary is %+v", summary)
			}
		})
	}
}

func TestFinally_runs_with_the_outcome_in_the_record(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		last engine.Result
		want engine.Outcome
	}{
		"success": {engine.Done("so it is"), engine.OutcomeUpgraded},
		"failure": {engine.Fail("Broken", "it is broken"), engine.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newFinally(t)
			s.setResult("Last", tc.last)
			s.setDo("Hooks", func(engine.Run) (engine.Result, error) {
				stored := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints)
				if stored.Outcome != tc.want || stored.State != engine.Finishing || stored.Finished() {
					t.Errorf("a final step runs, and the record holds %+v", stored)
				}
				return engine.Wait("HookRunning", "a hook runs"), nil
			})
			w.mustPass()
			if summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints); summary.State != engine.Finishing || summary.Current == nil {
				t.Errorf("while a final step waits: %+v", summary)
			}
		})
	}
}

func TestMilestones(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(s *script)
		want   engine.Milestone // of the step in the cleanup
	}{
		"a failure":                 {func(s *script) { s.setResult("First", engine.Fail("Broken", "it is broken")) }, engine.MilestoneFailed},
		"a cancellation":            {func(s *script) { s.Cancel = "deleted" }, engine.MilestoneCancelled},
		"a skip":                    {func(s *script) { s.setResult("First", engine.Fail("Suspended", "a window")) }, engine.MilestoneSkipped},
		"a skip, behind the commit": {func(s *script) { s.setResult("Last", engine.Fail("Suspended", "a window")) }, engine.MilestoneFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			s.SkipReasons = []string{"Suspended"}
			s.at("First").Milestone, s.at("LastCleaned").Milestone = engine.MilestoneStarted, engine.MilestoneFailed
			tc.before(s)
			w.run()
			record := w.store.load()
			if got := condition(record, "First").Milestone; got != engine.MilestoneStarted {
				t.Errorf("the first step is %q", got)
			}
			if got := condition(record, "LastCleaned").Milestone; got != tc.want {
				t.Errorf("the last step of the cleanup is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSummary_of_a_step_that_is_slow_or_held(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("First", engine.Wait("NotYet", "a while"))
	s.at("First").SlowAfter = time.Hour
	s.Hold = "paused"
	w.mustPass()
	summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints)
	if want := summary.Current.StartTime.Add(time.Hour); !summary.SlowAt.Equal(want) || !summary.Held || summary.Slow {
		t.Errorf("%+v, want it slow at %s", summary, want)
	}
	s.Hold = ""
	if summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints); summary.Held {
		t.Errorf("not held: %+v", summary)
	}
	s.setResult("First", engine.Done("so it is"))
	s.setResult("Last", engine.Wait("NotYet", "a while"))
	w.mustPass()
	s.Hold = "paused"
	if summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints); summary.Held || summary.Current.Type != "Last" {
		t.Errorf("after the commit: %+v", summary)
	}
}
