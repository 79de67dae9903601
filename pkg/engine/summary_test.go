// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Records are summarized as an upgrade leaves them.
func TestSummarize(t *testing.T) {
	t.Parallel()
	wait := engine.Wait("NotYet", "a while")
	type summarized struct {
		State            engine.UpgradeState
		Committed, Over  bool
		Current, Failure string
		Slow             bool
		Deadline         time.Duration // after the start of the window; 0 for none
	}
	for name, tc := range map[string]struct {
		set   func(s *script)
		look  bool          // whether a pass was made
		later time.Duration // after it
		want  summarized
	}{
		"before anything": {
			want: summarized{State: engine.Idle, Deadline: 30 * time.Minute},
		},
		"before the commit": {
			set: func(s *script) { s.setResult("First", wait) }, look: true,
			want: summarized{State: engine.Running, Current: "First", Deadline: 30 * time.Minute},
		},
		"in a step with a deadline before the end of the window": {
			set: func(s *script) { s.setResult("First", wait); s.at("First").FailAfter = 10 * time.Minute }, look: true,
			want: summarized{State: engine.Running, Current: "First", Deadline: 10 * time.Minute},
		},
		"in a step with a deadline after the end of the window": {
			set: func(s *script) { s.setResult("First", wait); s.at("First").FailAfter = time.Hour }, look: true,
			want: summarized{State: engine.Running, Current: "First", Deadline: 30 * time.Minute},
		},
		"at the commit": {
			set: func(s *script) { s.setResult("Commit", wait) }, look: true,
			want: summarized{State: engine.Running, Current: "Commit", Deadline: 30 * time.Minute},
		},
		"after the commit": {
			set: func(s *script) { s.setResult("Last", wait) }, look: true,
			want: summarized{State: engine.Running, Committed: true, Current: "Last"},
		},
		"after a commit that was skipped": {
			set: func(s *script) {
				s.setResult("Commit", engine.Skip("AlreadySo", "it is so"))
				s.setResult("Last", wait)
			}, look: true,
			want: summarized{State: engine.Running, Committed: true, Current: "Last"},
		},
		"in a slow step": {
			set: func(s *script) { s.setResult("Last", wait); s.at("Last").SlowAfter = time.Hour }, look: true, later: time.Hour,
			want: summarized{State: engine.Running, Committed: true, Current: "Last", Slow: true},
		},
		"in a step that is not slow": {
			set: func(s *script) { s.setResult("Last", wait); s.at("Last").SlowAfter = time.Hour }, look: true, later: time.Hour - time.Second,
			want: summarized{State: engine.Running, Committed: true, Current: "Last"},
		},
		"in a step without a limit": {
			set: func(s *script) { s.setResult("Last", wait) }, look: true, later: 1000 * time.Hour,
			want: summarized{State: engine.Running, Committed: true, Current: "Last"},
		},
		"finished": {
			look: true, want: summarized{State: engine.Succeeded, Committed: true, Over: true},
		},
		"during the cleanup": {
			set: func(s *script) {
				s.setResult("Commit", engine.Fail("Broken", "it is broken"))
				s.setResult("LastCleaned", wait)
			}, look: true,
			want: summarized{State: engine.CleaningUp, Current: "LastCleaned", Failure: "Commit"},
		},
		"aborted and cleaned up": {
			set: func(s *script) { s.setResult("First", engine.Fail("Broken", "it is broken")) }, look: true,
			want: summarized{State: engine.Failed, Over: true, Failure: "First"},
		},
		"aborted after the commit": {
			set: func(s *script) { s.setResult("Last", engine.Fail("Broken", "it is broken")) }, look: true,
			want: summarized{State: engine.Failed, Over: true, Committed: true, Failure: "Last"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			began := noon.Truncate(time.Second)
			s.CommitBy = began.Add(30 * time.Minute)
			if tc.set != nil {
				tc.set(s)
			}
			if tc.look {
				if _, err := w.pass(); err != nil {
					t.Fatal(err)
				}
			}
			record := w.store.load()
			summary := engine.Summarize(s.book(), record, w.clock.Now().Add(tc.later), s.Constraints)
			got := summarized{State: summary.State, Committed: summary.Committed, Over: summary.Finished(), Slow: summary.Slow}
			if summary.Current != nil {
				got.Current = summary.Current.Type
			}
			if summary.Failure != nil {
				got.Failure = summary.Failure.Type
			}
			if !summary.Deadline.IsZero() {
				got.Deadline = summary.Deadline.Sub(began)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(w.store.load(), record); diff != "" {
				t.Errorf("Assess changed the record (-before +after):\n%s", diff)
			}
			if phase, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, s.book(), record); err != nil || (phase == engine.PhaseCommitted) != summary.Committed {
				t.Errorf("the phase is %d, %v", phase, err)
			}
		})
	}
}

// Summarize's deadline is when the engine acts on it, and Summarize reports an upgrade as finished
// when the engine requests no further pass, at any time of an upgrade. (Every pass of every world
// checks the latter.)
func TestSummarize_agrees_with_Pass_at_any_time(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.after(time.Hour, func() { c.Unhealthy = "etcd is degraded" })
	c.runUntil(func() bool {
		summary := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints())
		if !summary.Deadline.IsZero() && summary.Deadline.Before(c.clock.Now()) {
			t.Errorf("at %s, the deadline %s has passed unnoticed", c.clock.Now(), summary.Deadline)
		}
		return false
	})
	failure := engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints()).Failure
	if took := failure.CompleteTime.Sub(failure.StartTime.Time); took != 2*time.Hour {
		t.Errorf("aborted after %s", took)
	}
}
