// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func ago(d time.Duration) *metav1.Time {
	return &metav1.Time{Time: noon.Add(-d).Truncate(time.Second)}
}

// People edit records. Whatever they leave, a finished step stays finished, and an unfinished one
// is continued.
func TestRecord_that_is_damaged_is_continued(t *testing.T) {
	t.Parallel()
	done := func(name string) history.StepCondition {
		return history.StepCondition{Type: name, Status: "True", Reason: "Done", StartTime: ago(time.Hour), CompleteTime: ago(time.Hour)}
	}
	waits := history.StepCondition{Type: "First", Status: "False", Reason: "NotYet", StartTime: ago(time.Minute), LastProbeTime: ago(time.Minute), LastTransitionTime: ago(time.Minute)}
	for name, tc := range map[string]struct {
		conditions []history.StepCondition
		started    *metav1.Time
		calls      []string
		record     []string
	}{
		"when the upgrade began is not recorded": {
			conditions: []history.StepCondition{done("First")},
			calls:      []string{"Commit", "Last"},
			record:     []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"when the upgrade began is not recorded, when its current step did is": {
			conditions: []history.StepCondition{waits},
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"when the current step began is not recorded": {
			conditions: []history.StepCondition{{Type: "First", Status: "False", Reason: "NotYet"}},
			started:    ago(time.Hour),
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"when the upgrade began is all that is recorded": {
			started: ago(time.Hour),
			calls:   []string{"First", "Commit", "Last"},
			record:  []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"the current step is there twice": {
			conditions: []history.StepCondition{waits, waits},
			started:    ago(time.Hour),
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"First True Done", "First False NotYet …", "Commit True Done", "Last True Done"},
		},
		"a finished step is there once more, unfinished": {
			conditions: []history.StepCondition{waits, done("First")},
			started:    ago(time.Hour),
			calls:      []string{"Commit", "Last"},
			record:     []string{"First False NotYet …", "First True Done", "Commit True Done", "Last True Done"},
		},
		"status True without a completeTime": {
			conditions: []history.StepCondition{{Type: "First", Status: "True", Reason: "Done", StartTime: ago(time.Hour)}},
			started:    ago(time.Hour),
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"First True Done", "Commit True Done", "Last True Done"},
		},
		"deleted between two finished ones": {
			conditions: []history.StepCondition{done("First"), done("Last")},
			started:    ago(time.Hour),
			record:     []string{"First True Done", "Commit True AddedLater", "Last True Done"},
		},
		"failed cleanup of an upgrade that was not aborted": {
			conditions: []history.StepCondition{done("First"), {Type: "FirstCleaned", Status: "False", Reason: "Stuck", CompleteTime: ago(time.Hour)}},
			started:    ago(time.Hour),
			calls:      []string{"Commit", "Last"},
			record:     []string{"First True Done", "Commit True Done", "Last True Done", "FirstCleaned False Stuck"},
		},
		"the steps are in the wrong order": {
			conditions: []history.StepCondition{done("Commit"), done("First")},
			started:    ago(time.Hour),
			calls:      []string{"Last"},
			record:     []string{"Commit True Done", "First True Done", "Last True Done"},
		},
		"a step is there by its old name and by its new one": {
			conditions: []history.StepCondition{done("Previously"), waits},
			started:    ago(time.Hour),
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"Previously True Done", "First True Done", "Commit True Done", "Last True Done"},
		},
		"committing step finished with an unknown status": {
			conditions: []history.StepCondition{done("First"), {Type: "Commit", Status: "Unknown", CompleteTime: ago(time.Hour)}},
			started:    ago(time.Hour),
			calls:      []string{"Last"},
			record:     []string{"First True Done", "Commit Unknown ", "Last True Done"},
		},
		"unknown steps only": {
			conditions: []history.StepCondition{done("Unknown"), {Type: "AlsoUnknown", Status: "False"}},
			started:    ago(time.Hour),
			calls:      []string{"First", "Commit", "Last"},
			record:     []string{"Unknown True Done", "AlsoUnknown True RemovedFromRunbook", "First True Done", "Commit True Done", "Last True Done"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newScript(t, "First", "Commit", "Last")
			for i := range s.Steps {
				s.Steps[i].FailAfter = 2 * time.Hour
			}
			s.at("First").FormerNames = []string{"Previously"}
			if len(tc.calls) < 2 {
				s.CommitBy = noon.Add(-time.Minute) // it is committed
			}
			w.store.put(history.Record{Version: target, StartTime: tc.started, Conditions: tc.conditions})
			w.run()
			record := w.store.load()
			if diff := cmp.Diff(tc.calls, w.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.record, lines(record)); diff != "" {
				t.Errorf("the record (-want +got):\n%s", diff)
			}
			if record.StartTime == nil || tc.started != nil && !record.StartTime.Equal(tc.started) {
				t.Errorf("the upgrade began at %s, and now the record has %s", tc.started, record.StartTime)
			}
			saves := w.store.saves
			if _, err := w.pass(); err != nil || w.store.saves != saves {
				t.Errorf("a further pass makes %d saves, %v", w.store.saves-saves, err)
			}
		})
	}
}

// A step whose start is unknown cannot time out. Now is recorded as its start, and saved with the
// next heartbeat.
func TestRecord_without_a_start_time_starts_now(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit")
	s.at("First").FailAfter, s.at("First").SlowAfter = 10*time.Minute, 5*time.Minute
	s.setResult("First", engine.Wait("NotYet", "a while"))
	record := history.Record{Version: target, Conditions: []history.StepCondition{{Type: "First", Status: "False", Reason: "NotYet"}}}
	w.store.put(record)
	if summary := engine.Summarize(s.book(), record, w.clock.Now(), s.Constraints); summary.Slow || summary.Deadline.Before(noon.Add(9*time.Minute)) {
		t.Errorf("the verdict is %+v", summary)
	}
	w.runUntil(func() bool { return isAborted(s.book(), w.store.load()) })
	if took := w.clock.Now().Sub(noon); took < 9*time.Minute || took > 10*time.Minute {
		t.Errorf("aborted after %s", took)
	}
}

// A damaged record must not be saved in every pass: a save is an event, and an event causes a pass.
func TestRecord_with_a_duplicate_is_not_saved_in_every_pass(t *testing.T) {
	t.Parallel()
	w, s := newScript(t, "First", "Commit", "Last")
	s.setResult("Commit", engine.Wait("NotYet", "a while"))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	record := w.store.load()
	record.Conditions = append(record.Conditions, history.StepCondition{Type: "First", Status: "False", Reason: "NotYet", StartTime: ago(0)})
	w.store.put(record)
	saves := w.store.saves
	for range 3 { // three events at one time
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if w.store.saves != saves {
		t.Errorf("%d saves in passes in which nothing changed", w.store.saves-saves)
	}
}
