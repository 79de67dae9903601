// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

var allObserved = []engine.Observed{
	engine.ObservedNone, engine.ObservedIgnored, engine.ObservedPending, engine.ObservedRefused, engine.ObservedOther, engine.ObservedBegun, engine.ObservedDone,
}

// Each cell of the table: what is recorded, by what is observed, confirmed and not.
func TestPhaseOf(t *testing.T) {
	t.Parallel()
	const (
		open, unsent, ours, foreign = engine.PhaseOpen, engine.PhaseUnsent, engine.PhaseOurs, engine.PhaseForeign
		lost, there, unknown        = engine.PhaseLost, engine.PhaseThere, engine.PhaseUnknown
		committed, superseded       = engine.PhaseCommitted, engine.PhaseSuperseded
	)
	for _, row := range []struct {
		name        string
		recorded    engine.Recorded
		confirmed   [7]engine.CommitPhase // None, Ignored, Pending, Refused, Other, Begun, Done
		unconfirmed [7]engine.CommitPhase
		failed      engine.CommitPhase
	}{
		{
			"Early", engine.RecordedEarly,
			[7]engine.CommitPhase{open, open, foreign, foreign, foreign, foreign, there},
			[7]engine.CommitPhase{open, open, foreign, foreign, foreign, foreign, unknown},
			unknown,
		},
		{
			"NotRequested", engine.RecordedNotRequested,
			[7]engine.CommitPhase{open, open, foreign, foreign, foreign, committed, there},
			[7]engine.CommitPhase{open, open, foreign, foreign, foreign, committed, unknown},
			unknown,
		},
		{
			"Requested", engine.RecordedRequested,
			[7]engine.CommitPhase{unsent, unsent, ours, ours, lost, committed, committed},
			[7]engine.CommitPhase{unsent, unsent, ours, ours, unknown, committed, committed},
			unknown,
		},
		{
			"Committed", engine.RecordedCommitted,
			[7]engine.CommitPhase{superseded, superseded, superseded, superseded, superseded, committed, committed},
			[7]engine.CommitPhase{committed, committed, committed, committed, committed, committed, committed},
			committed,
		},
	} {
		for i, observed := range allObserved {
			for confirmed, want := range map[bool]engine.CommitPhase{true: row.confirmed[i], false: row.unconfirmed[i]} {
				if got := engine.PhaseOf(row.recorded, observed, confirmed, nil); got != want {
					t.Errorf("%s, column %d, confirmed %t: phase %d, want %d", row.name, i, confirmed, got, want)
				}
				if got := engine.PhaseOf(row.recorded, observed, confirmed, errNoAnswer); got != row.failed {
					t.Errorf("%s, column %d, confirmed %t, with an error: phase %d, want %d", row.name, i, confirmed, got, row.failed)
				}
			}
		}
	}
}

// Each cell of the table of what follows from a phase: the end of the committing step, whether the request
// was made and withdrawn, and whether the record still holds it.
func TestReactionToEachPhase(t *testing.T) {
	t.Parallel()
	type end struct {
		reason              string // of the committing step
		requests, withdraws int
		requested           bool // by the record
	}
	situations := map[string]func(*script){
		"clear":     func(*script) {},
		"held":      func(s *script) { s.Hold = "paused" },
		"expired":   func(s *script) { s.CommitBy = noon.Add(time.Minute) },
		"cancelled": func(s *script) { s.Cancel = "deleted" },
	}
	const none, ignored, pending, refused, other, begun, done = engine.ObservedNone, engine.ObservedIgnored, engine.ObservedPending,
		engine.ObservedRefused, engine.ObservedOther, engine.ObservedBegun, engine.ObservedDone
	for phase, tc := range map[string]struct {
		requested bool // by the record
		observed  engine.Observed
		err       error // of the question
		want      map[string]end
	}{
		"Open": {observed: none, want: map[string]end{
			"clear": {"Requested", 1, 0, true}, "held": {"Paused", 0, 0, false}, "expired": {"WindowMissed", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Open, ignored": {observed: ignored, want: map[string]end{
			"clear": {"Requested", 1, 0, true}, "held": {"Paused", 0, 0, false}, "expired": {"WindowMissed", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Unsent": {requested: true, observed: none, want: map[string]end{
			"clear": {"Requested", 1, 0, true}, "held": {"Paused", 0, 1, false}, "expired": {"WindowMissed", 0, 1, true}, "cancelled": {"Cancelled", 0, 1, true},
		}},
		"Unsent, ignored": {requested: true, observed: ignored, want: map[string]end{
			"clear": {"Requested", 1, 0, true}, "held": {"Paused", 0, 1, false}, "expired": {"WindowMissed", 0, 1, true}, "cancelled": {"Cancelled", 0, 1, true},
		}},
		"Ours": {requested: true, observed: pending, want: map[string]end{
			"clear": {"Requested", 0, 0, true}, "held": {"Paused", 0, 1, false}, "expired": {"WindowMissed", 0, 1, true}, "cancelled": {"Cancelled", 0, 1, true},
		}},
		"Ours, refused": {requested: true, observed: refused, want: map[string]end{
			"clear": {"TargetRefused", 0, 0, true}, "held": {"Paused", 0, 1, false}, "expired": {"TargetRefused", 0, 1, true}, "cancelled": {"Cancelled", 0, 1, true},
		}},
		"Foreign": {observed: pending, want: map[string]end{
			"clear": {"AnotherUpdateInProgress", 0, 0, false}, "held": {"Paused", 0, 0, false}, "expired": {"WindowMissed", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Foreign, refused": {observed: refused, want: map[string]end{
			"clear": {"AnotherUpdateInProgress", 0, 0, false}, "held": {"Paused", 0, 0, false}, "expired": {"WindowMissed", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Foreign, another release": {observed: other, want: map[string]end{
			"clear": {"Waiting", 0, 0, false}, "held": {"Paused", 0, 0, false}, "expired": {"WindowMissed", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Lost": {requested: true, observed: other, want: map[string]end{
			"clear": {"Waiting", 0, 1, false}, "held": {"Paused", 0, 1, false}, "expired": {"WindowMissed", 0, 1, true}, "cancelled": {"Cancelled", 0, 1, true},
		}},
		"Committed": {requested: true, observed: begun, want: map[string]end{
			"clear": {"Done", 0, 0, true}, "held": {"Done", 0, 0, true}, "expired": {"Done", 0, 0, true}, "cancelled": {"Done", 0, 0, true},
		}},
		"Committed, installed": {requested: true, observed: done, want: map[string]end{
			"clear": {"Done", 0, 0, true}, "held": {"Done", 0, 0, true}, "expired": {"Done", 0, 0, true}, "cancelled": {"Done", 0, 0, true},
		}},
		"Committed by another client": {observed: begun, want: map[string]end{
			"clear": {"Done", 0, 0, false}, "held": {"Done", 0, 0, false}, "expired": {"Done", 0, 0, false}, "cancelled": {"Done", 0, 0, false},
		}},
		"There": {observed: done, want: map[string]end{
			"clear": {"Done", 0, 0, false}, "held": {"Paused", 0, 0, false}, "expired": {"Done", 0, 0, false}, "cancelled": {"Cancelled", 0, 0, false},
		}},
		"Unknown": {requested: true, err: errNoAnswer, want: map[string]end{
			"clear": {"CannotObserve", 0, 0, true}, "held": {"CannotObserve", 0, 0, true}, "expired": {"CannotObserve", 0, 0, true}, "cancelled": {"CannotObserve", 0, 0, true},
		}},
	} {
		for situation, set := range situations {
			t.Run(fmt.Sprintf("%s, %s", phase, situation), func(t *testing.T) {
				t.Parallel()
				w, s := newScript(t, "First", "Commit", "Last")
				var got end
				commit := s.at("Commit")
				commit.FailReason = "TargetRefused"
				commit.Commit = &engine.Commit{
					Observe: func(_ context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
						answer := engine.Result{}
						switch waits := tc.observed == pending || tc.observed == refused; {
						case waits && !run.Requested:
							answer = engine.Wait("AnotherUpdateInProgress", "another client's")
						case tc.observed == pending:
							answer = engine.Wait("Requested", "requested")
						case tc.observed == refused:
							answer = engine.Wait("TargetRefused", "refused")
						}
						return tc.observed, answer, tc.err
					},
					Withdraw: func(context.Context, engine.Run) (engine.Result, error) {
						got.withdraws++
						return engine.Done("withdrawn"), nil
					},
				}
				s.setDo("Commit", func(engine.Run) (engine.Result, error) {
					got.requests++
					return engine.Wait("Requested", "requested"), nil
				})
				record := w.store.load()
				record.StartTime = ago(time.Hour)
				for name, reason := range map[string]string{"First": "Done", "Commit": "Requested"} {
					c := history.StepCondition{Type: name, Status: "False", Reason: reason, StartTime: ago(time.Hour), LastProbeTime: ago(time.Minute), LastTransitionTime: ago(time.Hour)}
					if name == "First" {
						c.Status, c.CompleteTime = "True", ago(time.Hour)
					} else if tc.requested && tc.observed == refused {
						c.Reason = "TargetRefused"
					}
					record.Conditions = append(record.Conditions, c)
				}
				if tc.requested {
					record.RequestTime = ago(time.Hour)
				}
				w.store.put(record)
				set(s)
				w.clock.SetTime(noon.Add(2 * time.Minute))
				w.mustPass()
				record = w.store.load()
				got.reason, got.requested = condition(record, "Commit").Reason, record.RequestTime != nil
				if got != tc.want[situation] {
					t.Errorf("got %+v, want %+v; %q", got, tc.want[situation], lines(record))
				}
			})
		}
	}
}
