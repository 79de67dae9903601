// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestStartInTheFutureDoesNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tomorrow := metav1.NewTime(now.Add(24 * time.Hour))
	waiting := func(context.Context, engine.Run) (engine.Result, error) { return engine.Wait("Busy", "busy"), nil }
	book := engine.Runbook{
		Steps:   []engine.Step{{Name: "Commit", Doc: "Commits.", Do: waiting, Commit: committing(always(false)), FailAfter: 10 * time.Minute}},
		Cleanup: []engine.Step{{Name: "Cleaned", Doc: "Cleans up.", Do: waiting, FailAfter: 10 * time.Minute}},
	}
	record := history.Record{StartTime: &tomorrow, Conditions: []history.StepCondition{
		{Type: "Commit", Status: metav1.ConditionFalse, Reason: "Busy", StartTime: &tomorrow, LastProbeTime: &tomorrow, LastTransitionTime: &tomorrow},
	}}
	clk := clocktesting.NewFakePassiveClock(now)
	e := &engine.Engine{Clock: clk, Save: func(context.Context, history.Record) error { return nil }}
	for range 3 {
		var err error
		if record, _, err = e.Pass(t.Context(), book, record, engine.Constraints{}); err != nil {
			t.Fatal(err)
		}
		clk.SetTime(clk.Now().Add(11 * time.Minute))
	}
	if s := engine.Summarize(book, record, clk.Now(), engine.Constraints{}); s.State != engine.Failed {
		t.Errorf("the state is %s, want %s: %+v", s.State, engine.Failed, record.Conditions)
	}
}

// What counts from a time in the future counts from the first pass that sees it.
func TestTimesInTheFutureAreReplacedOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	earlier, tomorrow := metav1.NewTime(now.Add(-time.Hour)), metav1.NewTime(now.Add(24*time.Hour))
	waiting := func(context.Context, engine.Run) (engine.Result, error) { return engine.Wait("Busy", "busy"), nil }
	book := engine.Runbook{Steps: []engine.Step{{Name: "Commit", Doc: "Commits.", Do: waiting, Commit: committing(always(false))}}}
	record := history.Record{StartTime: &earlier, Conditions: []history.StepCondition{{
		Type: "Commit", Status: metav1.ConditionFalse, Reason: "Busy", Message: "busy", StartTime: &earlier, LastProbeTime: &earlier,
		LastTransitionTime: &earlier, ReasonTime: &tomorrow, ProgressTime: &tomorrow,
	}}}
	clk := clocktesting.NewFakePassiveClock(now)
	e := &engine.Engine{Clock: clk, Save: func(context.Context, history.Record) error { return nil }}
	for range 2 {
		var err error
		if record, _, err = e.Pass(t.Context(), book, record, engine.Constraints{}); err != nil {
			t.Fatal(err)
		}
		clk.SetTime(clk.Now().Add(time.Minute))
	}
	if c := record.Conditions[0]; !c.ReasonTime.Time.Equal(now) || !c.ProgressTime.Time.Equal(now) || !c.StartTime.Equal(&earlier) {
		t.Errorf("%+v", c)
	}
}

// Another process whose clock is ahead restores such a time. The two would replace it in turn without a pause.
func TestTimesInTheFutureAreReplacedAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	recent, tomorrow := metav1.NewTime(now), metav1.NewTime(now.Add(24*time.Hour))
	waiting := func(context.Context, engine.Run) (engine.Result, error) { return engine.Wait("Busy", "busy"), nil }
	book := engine.Runbook{Steps: []engine.Step{{Name: "Commit", Doc: "Commits.", Do: waiting, Commit: committing(always(false))}}}
	for age, want := range map[time.Duration]int{0: 0, time.Minute - time.Second: 0, time.Minute: 1, -time.Second: 1} {
		record := history.Record{StartTime: &recent, Conditions: []history.StepCondition{{
			Type: "Commit", Status: metav1.ConditionFalse, Reason: "Busy", Message: "busy", StartTime: &recent, LastProbeTime: &recent,
			LastTransitionTime: &recent, ReasonTime: &recent, ProgressTime: &tomorrow,
		}}}
		saves := 0
		e := &engine.Engine{Clock: clocktesting.NewFakePassiveClock(now), SavedAt: now.Add(-age), Save: func(context.Context, history.Record) error {
			saves++
			return nil
		}}
		if _, _, err := e.Pass(t.Context(), book, record, engine.Constraints{}); err != nil {
			t.Fatal(err)
		}
		if saves != want {
			t.Errorf("%d saves %s after the last one, want %d", saves, age, want)
		}
	}
}
