// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestTable_may_change_during_an_upgrade(t *testing.T) {
	t.Parallel()
	wait := engine.Wait("NotYet", "a while")
	for name, tc := range map[string]struct {
		before    []string
		waits     string // the step that waits when the table changes
		fails     string // the step that fails before that
		change    func(s *script)
		calls     []string // after the change
		recording []string
	}{
		"a step added before the furthest finished one is left out": {
			before: []string{"First", "Commit", "Last"}, waits: "Last",
			change:    func(s *script) { s.Steps = slices.Insert(s.Steps, 1, s.step("Added")) },
			calls:     []string{"Last"},
			recording: []string{"First True Done", "Added True AddedLater", "Commit True Done", "Last True Done"},
		},
		"step added before the current one runs": {
			before: []string{"First", "Commit", "Last"}, waits: "Last",
			change:    func(s *script) { s.Steps = slices.Insert(s.Steps, 2, s.step("Added")) },
			calls:     []string{"Added", "Last"},
			recording: []string{"First True Done", "Commit True Done", "Added True Done", "Last True Done"},
		},
		"step added after the current one runs in its turn": {
			before: []string{"First", "Commit", "Last"}, waits: "Commit",
			change:    func(s *script) { s.Steps = slices.Insert(s.Steps, 2, s.step("Added")) },
			calls:     []string{"Commit", "Added", "Last"},
			recording: []string{"First True Done", "Commit True Done", "Added True Done", "Last True Done"},
		},
		"renamed finished step does not run again": {
			before: []string{"First", "Commit", "Last"}, waits: "Commit",
			change:    func(s *script) { renameStep(s, "First") },
			calls:     []string{"Commit", "Last"},
			recording: []string{"Renamed True Done", "Commit True Done", "Last True Done"},
		},
		"renamed current step keeps its start": {
			before: []string{"First", "Commit", "Last"}, waits: "First",
			change:    func(s *script) { renameStep(s, "First") },
			calls:     []string{"Renamed", "Commit", "Last"},
			recording: []string{"Renamed True Done", "Commit True Done", "Last True Done"},
		},
		"a step may be renamed twice": {
			before: []string{"First", "Commit", "Last"}, waits: "Commit",
			change: func(s *script) {
				renameStep(s, "First")
				s.at("Renamed").FormerNames = []string{"Between", "First"}
			},
			calls:     []string{"Commit", "Last"},
			recording: []string{"Renamed True Done", "Commit True Done", "Last True Done"},
		},
		"the committing step may be renamed after the commit": {
			before: []string{"First", "Commit", "Last"}, waits: "Last",
			change: func(s *script) {
				renameStep(s, "Commit")
				s.at("Renamed").Commit = s.commit(always(false))
				s.CommitBy = noon.Add(-time.Hour)
			},
			calls:     []string{"Last"},
			recording: []string{"First True Done", "Renamed True Done", "Last True Done"},
		},
		"a finished step that was removed stays as history": {
			before: []string{"First", "Second", "Commit", "Last"}, waits: "Commit",
			change:    func(s *script) { s.Steps = slices.Delete(s.Steps, 1, 2) },
			calls:     []string{"Commit", "Last"},
			recording: []string{"First True Done", "Second True Done", "Commit True Done", "Last True Done"},
		},
		"the current step is closed when it is removed": {
			before: []string{"First", "Second", "Commit", "Last"}, waits: "Second",
			change:    func(s *script) { s.Steps = slices.Delete(s.Steps, 1, 2) },
			calls:     []string{"Commit", "Last"},
			recording: []string{"First True Done", "Second True RemovedFromRunbook", "Commit True Done", "Last True Done"},
		},
		"finished steps may be reordered": {
			before: []string{"First", "Second", "Commit", "Last"}, waits: "Commit",
			change:    func(s *script) { s.Steps[0], s.Steps[1] = s.Steps[1], s.Steps[0] },
			calls:     []string{"Commit", "Last"},
			recording: []string{"First True Done", "Second True Done", "Commit True Done", "Last True Done"},
		},
		"the current step waits for its new turn": {
			before: []string{"First", "Second", "Commit", "Last"}, waits: "First",
			change:    func(s *script) { s.Steps[0], s.Steps[1] = s.Steps[1], s.Steps[0] },
			calls:     []string{"Second", "First", "Commit", "Last"},
			recording: []string{"Second True Done", "First True Done", "Commit True Done", "Last True Done"},
		},
		"step moved before the commit after the commit ignores the window": {
			before: []string{"First", "Commit", "Last"}, waits: "Last",
			change: func(s *script) {
				s.Steps[1], s.Steps[2] = s.Steps[2], s.Steps[1]
				s.CommitBy, s.Hold, s.Cancel = noon.Add(time.Second), "paused", "deleted"
			},
			calls:     []string{"Last"},
			recording: []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"aborted, added step does not run": {
			before: []string{"First", "Commit", "Last"}, fails: "Commit", waits: "FirstCleaned",
			change: func(s *script) {
				s.Steps = append([]engine.Step{s.step("Added")}, append(s.Steps, s.step("AlsoAdded"))...)
			},
			calls:     []string{"FirstCleaned", "LastCleaned"},
			recording: []string{"Added True AddedLater", "First True Done", "Commit False Broken", "FirstCleaned True Done", "LastCleaned True Done"},
		},
		"aborted, step added to the cleanup runs": {
			before: []string{"First", "Commit", "Last"}, fails: "First", waits: "LastCleaned",
			change:    func(s *script) { s.Cleanup = slices.Insert(s.Cleanup, 1, s.step("Added")) },
			calls:     []string{"Added", "LastCleaned"},
			recording: []string{"First False Broken", "FirstCleaned True Done", "Added True Done", "LastCleaned True Done"},
		},
		"aborted by a step that is removed stays aborted": {
			before: []string{"First", "Commit", "Last"}, fails: "First", waits: "FirstCleaned",
			change:    func(s *script) { s.Steps = s.Steps[1:] },
			calls:     []string{"FirstCleaned", "LastCleaned"},
			recording: []string{"First False Broken", "FirstCleaned True Done", "LastCleaned True Done"},
		},
		"cleanup step may be renamed and removed": {
			before: []string{"First", "Commit", "Last"}, fails: "First", waits: "LastCleaned",
			change: func(s *script) {
				renameStep(s, "FirstCleaned")
				s.Cleanup = s.Cleanup[:1]
			},
			recording: []string{"First False Broken", "Renamed True Done", "LastCleaned True RemovedFromRunbook"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, tc.before...)
			s.setResult(tc.waits, wait)
			if tc.fails != "" {
				s.setResult(tc.fails, engine.Fail("Broken", "it is broken"))
			}
			next, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			began := w.store.load()
			w.calls = nil
			w.advance(next)
			tc.change(s)
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			s.setResult(tc.waits, engine.Done("so it is"))
			if summary := engine.Summarize(s.book(), w.store.load(), w.clock.Now(), s.Constraints); summary.Finished() && len(tc.calls) > 0 {
				t.Errorf("Summarize reports it as finished: %+v", summary)
			}
			w.run()
			record := w.store.load()
			if diff := cmp.Diff(tc.recording, lines(record)); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.calls, w.calls); diff != "" {
				t.Errorf("calls after the change (-want +got):\n%s", diff)
			}
			for _, c := range record.Conditions {
				if previous := condition(began, c.Type); previous != nil && !previous.StartTime.Equal(c.StartTime) {
					t.Errorf("%s began at %s, and now the record has %s", c.Type, previous.StartTime, c.StartTime)
				}
			}
			if began.StartTime == nil || !began.StartTime.Equal(record.StartTime) {
				t.Errorf("the upgrade began at %s, and now the record has %s", began.StartTime, record.StartTime)
			}
		})
	}
}

// renameStep renames a step to Renamed, as a later release would, without changing what it does.
func renameStep(s *script, formerName string) {
	step := s.at(formerName)
	step.Name, step.FormerNames = "Renamed", append(step.FormerNames, formerName)
}

// A deadline is measured from the start of the step under its former name.
func TestTable_renamed_step_keeps_its_deadline(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.at("First").FailAfter = 10 * time.Minute
	s.setResult("First", engine.Wait("NotYet", "a while"))
	w.runUntil(func() bool { return w.clock.Now().After(noon.Add(4 * time.Minute)) })
	renameStep(s, "First")
	w.runUntil(func() bool { return isAborted(s.book(), w.store.load()) })
	if took := w.clock.Now().Sub(noon); took > 10*time.Minute {
		t.Errorf("a renamed step failed after %s", took)
	}
}

// The operator is replaced by another release at every save: one step renamed, one removed, two
// added, and two reordered.
func TestTable_may_change_at_every_save(t *testing.T) {
	t.Parallel()
	want, saves, _ := runUndisturbed(t)
	for n := 1; n <= saves; n++ {
		c := newCluster(t)
		c.store.plan = only(n, crashAfter)
		c.runUntil(func() bool { return c.store.saves == n })
		c.book = func() engine.Runbook {
			book, added := c.runbook(), func(name string) engine.Step {
				return engine.Step{Name: name, Doc: "It is new.", Do: engine.FromBool(always(true))}
			}
			steps := book.Steps
			steps[0], steps[1] = steps[1], steps[0]
			steps[3].Name, steps[3].FormerNames = "ExtraNodeAvailable", []string{"ExtraNodeReady"}
			steps = slices.Delete(steps, 2, 3)
			steps = slices.Insert(steps, 4, added("ControlPlaneNoticed"))
			book.Steps = append(steps, added("Archived"))
			return book
		}
		c.run()
		if diff := cmp.Diff(want.Facts, c.facts); diff != "" {
			t.Errorf("upgraded at save %d (-undisturbed +disturbed):\n%s", n, diff)
		}
		if state := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints()).State; state != engine.Succeeded {
			t.Errorf("upgraded at save %d: %s, %v", n, state, lines(c.store.load()))
		}
	}
}
