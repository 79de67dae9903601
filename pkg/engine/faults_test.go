// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestUpgrade_without_faults(t *testing.T) {
	t.Parallel()
	end, _, _ := runUndisturbed(t)
	want := []string{
		"StartedNotificationSent True Done",
		"VersionPinned True Done",
		"PreHealthCheck True Done",
		"ExtraNodeReady True Done",
		"CommenceUpgrade True Done",
		"ControlPlaneUpgraded True Done",
		"WorkersUpgraded True Done",
		"PostHealthCheck True Done",
		"ExtraNodeRemoved True Done",
		"CompletedNotificationSent True Done",
	}
	if diff := cmp.Diff(want, end.Record); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if end.Facts.DesiredSet != 1 || end.Facts.ExtraNode {
		t.Errorf("left behind: %+v", end.Facts)
	}
}

// Whatever happens to one save, the upgrade ends as it does without faults. The guarantees about
// each call are checked in every pass (see world.check).
func TestSave_may_fail_in_every_way(t *testing.T) {
	t.Parallel()
	want, saves, _ := runUndisturbed(t)
	for name, fails := range map[string]saveFault{
		"save rejected":                               refuseSave,
		"save rejected, and all later ones":           refuseAllSaves,
		"save applied, with an error as the response": loseAnswer,
		"save applied, and the process crashes":       crashAfter,
		"save not applied, and the process crashes":   crashBefore,
	} {
		t.Run("a save "+name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= saves; n++ {
				c := newCluster(t)
				c.store.plan = only(n, fails)
				c.run()
				if diff := cmp.Diff(want, c.end()); diff != "" {
					t.Errorf("save %d %s (-undisturbed +disturbed):\n%s", n, name, diff)
				}
			}
		})
	}
}

// Every second save fails, and every process ends after a few.
func TestSave_may_fail_every_time(t *testing.T) {
	t.Parallel()
	want, _, _ := runUndisturbed(t)
	for _, fails := range []saveFault{refuseSave, refuseAllSaves, loseAnswer, crashAfter, crashBefore} {
		c := newCluster(t)
		c.store.plan = func(n int) saveFault {
			if n%2 == 0 {
				return fails
			}
			return serveSave
		}
		c.run()
		if diff := cmp.Diff(want, c.end()); diff != "" {
			t.Errorf("every second save has fault %d (-undisturbed +disturbed):\n%s", fails, diff)
		}
	}
}

func TestCrash_in_every_call_of_a_step(t *testing.T) {
	t.Parallel()
	want, _, calls := runUndisturbed(t)
	for name, when := range map[string]moment{"before it acts": beforeActing, "after it acted": afterActing} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= calls; n++ {
				c := newCluster(t)
				c.atCall = func(call int) moment {
					if call == n {
						return when
					}
					return never
				}
				c.run()
				if diff := cmp.Diff(want, c.end()); diff != "" {
					t.Errorf("a crash in call %d (-undisturbed +disturbed):\n%s", n, diff)
				}
				if c.calls[n-1] != c.calls[n] { // at least once: it is retried first
					t.Errorf("after a crash in %s, %s was called", c.calls[n-1], c.calls[n])
				}
			}
		})
	}
}

// The record is lost at every save and at every call. Before the commit the upgrade starts anew.
// After it, the upgrade continues after the committing step, also if the window has closed.
func TestRecord_may_be_lost_at_any_time(t *testing.T) {
	t.Parallel()
	want, saves, calls := runUndisturbed(t)
	lost := func(t *testing.T, name string, c *cluster, before *bool, callsThen *int) {
		t.Helper()
		c.run()
		if diff := cmp.Diff(want.Facts, c.facts); diff != "" {
			t.Errorf("%s: left behind (-undisturbed +disturbed):\n%s", name, diff)
		}
		record := lines(c.store.load())
		if *before {
			if diff := cmp.Diff(want.Record, record); diff != "" {
				t.Errorf("%s, before the commit: the record (-undisturbed +disturbed):\n%s", name, diff)
			}
			return
		}
		commit := indexOfCommit(c.book())
		for i, step := range c.book().Steps {
			switch {
			case i > commit && record[i] != want.Record[i]:
				t.Errorf("%s, after the commit: %q in the record, want %q", name, record[i], want.Record[i])
			case i <= commit && record[i] != step.Name+" True AlreadyReached":
				t.Errorf("%s, after the commit: %q in the record, want it adopted", name, record[i])
			case i <= commit && slices.Contains(c.calls[*callsThen:], step.Name):
				t.Errorf("%s, after the commit: %s was called again", name, step.Name)
			}
		}
		if c.store.load().StartTime == nil {
			t.Errorf("%s: the adopted upgrade never started", name)
		}
	}
	t.Run("at a save", func(t *testing.T) {
		t.Parallel()
		for n := 1; n <= saves; n++ {
			c := newCluster(t)
			before, callsThen := false, 0
			c.store.plan = func(save int) saveFault {
				if save == n {
					before, callsThen = !c.Accepted, len(c.calls)
					return loseRecord
				}
				return serveSave
			}
			lost(t, fmt.Sprintf("save %d", n), c, &before, &callsThen)
		}
	})
	t.Run("in a call", func(t *testing.T) {
		t.Parallel()
		for n := 1; n <= calls; n++ {
			c := newCluster(t)
			before, callsThen := false, 0
			c.atCall = func(call int) moment {
				if call == n {
					before, callsThen = !c.Accepted, call
					c.store.lose()
					return beforeActing
				}
				return never
			}
			lost(t, fmt.Sprintf("call %d", n), c, &before, &callsThen)
		}
	})
}

func TestRecord_that_is_lost_is_compared_with_the_cluster(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setReached("Commit", false, errStore)
	if next, err := w.pass(); err == nil || !next.IsZero() {
		t.Errorf("state of the cluster unknown: next pass %s, error %v", next, err)
	}
	if _, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), w.store.load()); err == nil {
		t.Error("state of the cluster unknown, and CurrentPhase returns no error")
	}
	if w.store.saves > 0 || len(w.calls) > 0 {
		t.Errorf("nothing is known of the upgrade, yet %d saves and calls of %v", w.store.saves, w.calls)
	}

	s.setReached("Commit", true, nil)
	if phase, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), w.store.load()); err != nil || phase != engine.PhaseCommitted {
		t.Errorf("the empty record of a committed upgrade: phase %d, %v", phase, err)
	}
	w.run()
	want := []string{"First True AlreadyReached", "Commit True AlreadyReached", "Last True Done"}
	if diff := cmp.Diff(want, lines(w.store.load())); diff != "" {
		t.Errorf("the adopted record (-want +got):\n%s", diff)
	}
	s.setReached("Commit", false, nil)
	if phase, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), w.store.load()); err != nil || phase != engine.PhaseCommitted {
		t.Errorf("the record is committed: phase %d, %v", phase, err)
	}
}

// Even within one pass, the start of a step is saved before the step is called, and its result before the next call.
func TestRecord_is_saved_before_the_step_is_called(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	var seen []string
	for _, name := range []string{"First", "Commit", "Last"} {
		s.setDo(name, func(engine.Run) (engine.Result, error) {
			seen = append(seen, fmt.Sprintf("%s: %v", name, lines(w.store.load())))
			return engine.Done(""), nil
		})
	}
	w.run()
	want := []string{
		"First: [First False Started …]",
		"Commit: [First True Done Commit False Started …]",
		"Last: [First True Done Commit True Done Last False Started …]",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("what the store held at each call (-want +got):\n%s", diff)
	}
	if w.store.saves != 4 || w.passes != 1 {
		t.Errorf("three steps that are ready took %d saves in %d passes, want 4 in 1", w.store.saves, w.passes)
	}
}

// only applies a fault to the n-th save, and stores all others.
func only(n int, f saveFault) func(int) saveFault {
	return func(save int) saveFault {
		if save == n {
			return f
		}
		return serveSave
	}
}
