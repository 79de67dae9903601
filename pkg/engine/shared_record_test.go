// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// TestRecord_of_the_caller_is_unchanged passes records that the engine repairs: the record may be
// the object in the cache.
func TestRecord_of_the_caller_is_unchanged(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	started := metav1.NewTime(now.Add(-time.Minute))
	running := func(name string) history.StepCondition {
		return history.StepCondition{Type: name, Status: metav1.ConditionFalse, Reason: "Waiting", StartTime: &started, LastProbeTime: &started, LastTransitionTime: &started}
	}
	finished := func(name string) history.StepCondition {
		c := running(name)
		c.Status, c.Reason, c.CompleteTime = metav1.ConditionTrue, "", &started
		return c
	}
	failed := finished("Step00")
	failed.Status, failed.Reason = metav1.ConditionFalse, "TimedOut"
	noStart := running("Step00")
	noStart.StartTime = nil
	for name, conditions := range map[string][]history.StepCondition{
		"empty":                     nil,
		"waiting":                   {running("Step00")},
		"renamed":                   {finished("OldStep00"), running("OldStep01")},
		"removed from the runbook":  {finished("Step00"), running("Removed")},
		"without a start":           {noStart},
		"added to the runbook":      {finished("Step00"), finished("Step02"), finished("Step04")},
		"failed":                    {failed},
		"duplicate of a later step": {finished("Step03"), running("Step03"), running("Step04")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spare := append(make([]history.StepCondition, 0, 64), conditions...)
			record := history.Record{Version: "4.4.6", StartTime: &started, Conditions: spare}
			all := spare[:cap(spare)]
			before := (&history.Record{Conditions: all}).DeepCopy().Conditions
			unchanged := func(after string) {
				if diff := cmp.Diff(before, all); diff != "" {
					t.Errorf("%s changed the record (-before +after):\n%s", after, diff)
				}
			}

			book := twenty(engine.Wait("Waiting", "for nodes"))
			summary := engine.Summarize(book, record, now, engine.Constraints{})
			if summary.Failure != nil {
				summary.Failure.Message = "changed by the caller"
			}
			unchanged("Summarize")
			clock := testingclock.NewFakePassiveClock(now)
			e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { return nil }}
			if _, _, err := e.Pass(t.Context(), book, record, engine.Constraints{}); err != nil {
				t.Fatal(err)
			}
			unchanged("Pass")
		})
	}
}

// TestSave_gets_a_record_of_its_own keeps every saved record: what the engine does later in the
// same pass does not change it.
func TestSave_gets_a_record_of_its_own(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var saved, copies []history.Record
	e := &engine.Engine{Clock: clock, Save: func(_ context.Context, record history.Record) error {
		saved, copies = append(saved, record), append(copies, *record.DeepCopy())
		return nil
	}}
	last, _, err := e.Pass(t.Context(), twenty(engine.Done("done")), history.Record{Version: "4.4.6"}, engine.Constraints{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(copies, saved); diff != "" {
		t.Errorf("saved records (-when saved +at the end):\n%s", diff)
	}
	if diff := cmp.Diff(saved[len(saved)-1], last); diff != "" {
		t.Errorf("returned record (-last saved +got):\n%s", diff)
	}
}
