// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// finalSteps are the final steps of the last release.
var finalSteps = map[string][]string{
	"Job":       {"SuccessHooksDone", "CompletedNotificationSent", "FinishHooksDone"},
	"HooksOnly": {"SuccessHooksDone", "CompletedNotificationSent", "FinishHooksDone"},
}

// lastRelease returns a record of an attempt of the last release that has ended.
func lastRelease(t *testing.T, kind, end string) history.Record {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "last-release", kind+"-"+end+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var record history.Record
	if err := json.Unmarshal(raw, &record); err != nil {
		t.Fatal(err)
	}
	return record
}

// currentTable returns the table of this release, whose steps record their calls.
func currentTable(kind string, calls *[]string) engine.Runbook {
	deps := Deps{Config: config.Default()}
	table := map[string]ClusterUpgrader{"OSD": OSD{deps}, "ARO": ARO{deps}, "Job": Job{deps}, "HooksOnly": Job{deps}}[kind]
	attempt := Attempt{}
	if kind == "Job" {
		attempt.Job = jobTo("4.20.6")
	}
	return stub(table.Runbook(attempt), calls, false)
}

// formerTable returns the table of the last release, as its records show it.
func formerTable(t *testing.T, kind string, calls *[]string) engine.Runbook {
	t.Helper()
	var book engine.Runbook
	add := func(table *[]engine.Step, c history.StepCondition) {
		step := engine.Step{Name: c.Type, Doc: "Is a step of the last release.", Milestone: c.Milestone, Do: func(context.Context, engine.Run) (engine.Result, error) { return engine.Done(""), nil }}
		if c.Milestone == engine.MilestoneCommenced {
			step.Commit = &engine.Commit{}
		}
		*table = append(*table, step)
	}
	for _, c := range lastRelease(t, kind, "upgraded").Conditions {
		if slices.Contains(finalSteps[kind], c.Type) {
			add(&book.Finally, c)
		} else {
			add(&book.Steps, c)
		}
	}
	failed := lastRelease(t, kind, "failed").Conditions
	for _, c := range failed[failure(failed)+1:] {
		if !slices.Contains(finalSteps[kind], c.Type) {
			add(&book.Cleanup, c)
		}
	}
	return stub(book, calls, false)
}

// failure returns the index of the step that failed, or -1.
func failure(conditions []history.StepCondition) int {
	return slices.IndexFunc(conditions, func(c history.StepCondition) bool {
		return c.CompleteTime != nil && c.Status == metav1.ConditionFalse
	})
}

// at returns the record as it was while a step was running.
func at(ended history.Record, i int) history.Record {
	r := *ended.DeepCopy()
	r.Conditions = r.Conditions[:i+1]
	c := &r.Conditions[i]
	c.Status, c.Reason, c.Message, c.CompleteTime = metav1.ConditionFalse, "Waiting", "waiting", nil
	r.Phase, r.Reason, r.Message, r.CompleteTime = history.PhaseUpgrading, "", "", nil
	commit := slices.IndexFunc(r.Conditions, func(c history.StepCondition) bool { return c.Milestone == engine.MilestoneCommenced })
	if commit < 0 || commit == i {
		r.CommenceTime = nil
	}
	if commit < 0 {
		r.RequestTime = nil
	}
	return r
}

// path returns the names of the steps that are left from that step on.
func path(book engine.Runbook, from string, failed bool) []string {
	table := book.Steps
	if failed {
		table = book.Cleanup
	}
	var names []string
	for _, step := range slices.Concat(table, book.Finally) {
		names = append(names, step.Name)
		if step.Name == from || slices.Contains(step.FormerNames, from) {
			names = names[len(names)-1:]
		}
	}
	return names
}

// resume continues a record with a table to its end.
func resume(t *testing.T, book engine.Runbook, record history.Record) history.Record {
	t.Helper()
	last := record.Conditions[len(record.Conditions)-1]
	clock := testingclock.NewFakePassiveClock(last.LastProbeTime.Add(time.Second))
	e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { return nil }}
	after, next, err := e.Pass(t.Context(), book, record, engine.Constraints{})
	if err != nil || !next.IsZero() {
		t.Errorf("the next pass is at %s, %v", next, err)
	}
	for _, c := range record.Conditions {
		if c.CompleteTime != nil && !slices.ContainsFunc(after.Conditions, func(got history.StepCondition) bool {
			return got.StartTime.Equal(c.StartTime) && got.CompleteTime.Equal(c.CompleteTime) && got.Reason == c.Reason
		}) {
			t.Errorf("the record held %+v", c)
		}
	}
	return after
}

// This release continues a record of the last release at any step. After a rollback, the last
// release continues a record of this one.
func TestRecordsOfTheLastRelease(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"OSD", "ARO", "Job", "HooksOnly"} {
		for _, end := range []string{"upgraded", "failed"} {
			t.Run(kind+" "+end, func(t *testing.T) {
				t.Parallel()
				var calls []string
				ended := lastRelease(t, kind, end)
				for i := failure(ended.Conditions) + 1; i < len(ended.Conditions); i++ {
					name := ended.Conditions[i].Type
					calls = nil
					after := resume(t, currentTable(kind, &calls), at(ended, i))
					if diff := cmp.Diff(path(currentTable(kind, new([]string)), name, end == "failed"), withoutNotes(calls)); diff != "" {
						t.Errorf("%s was running: calls (-want +got):\n%s", name, diff)
					}

					// Rolled back while the step was running that this release has begun last.
					now := slices.IndexFunc(after.Conditions, func(c history.StepCondition) bool { return c.Type == name })
					calls = nil
					resume(t, formerTable(t, kind, &calls), at(after, now))
					if diff := cmp.Diff(path(formerTable(t, kind, new([]string)), name, end == "failed"), withoutNotes(calls)); diff != "" {
						t.Errorf("%s was running at the rollback: calls (-want +got):\n%s", name, diff)
					}
				}
			})
		}
	}
}

// withoutNotes returns the names of called steps.
func withoutNotes(calls []string) []string {
	for i := range calls {
		calls[i] = strings.TrimSuffix(calls[i], " (not requested)")
	}
	return calls
}
