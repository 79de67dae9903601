// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// stub replaces the steps by stubs that record their calls.
func stub(book engine.Runbook, calls *[]string, committed bool) engine.Runbook {
	for _, steps := range [][]engine.Step{book.Steps, book.Cleanup, book.Finally} {
		for i := range steps {
			name := steps[i].Name
			steps[i].Gates, steps[i].KeepAlive = nil, nil
			steps[i].Do = func(_ context.Context, run engine.Run) (engine.Result, error) {
				if name == "TargetWithdrawn" && !run.Requested {
					name += " (not requested)"
				}
				*calls = append(*calls, name)
				return engine.Done(""), nil
			}
			if steps[i].Commit != nil {
				steps[i].Commit = &engine.Commit{
					Observe: func(_ context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
						if committed && run.Confirm {
							return engine.ObservedBegun, engine.Result{}, nil
						}
						return engine.ObservedNone, engine.Result{}, nil
					},
					Withdraw: func(context.Context, engine.Run) (engine.Result, error) {
						*calls = append(*calls, "withdraw")
						return engine.Done("withdrawn"), nil
					},
				}
			}
			steps[i].Reached = func(context.Context) (bool, error) { return committed, nil }
		}
	}
	return book
}

// The records in testdata were written by the first release, before gates and keep-alives were data
// and before conditions had milestones. Each is continued where it stood.
func TestRecordOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	cleanup := []string{"TargetWithdrawn", "ChannelRestored", "ClusterSettled", "SilencesEnded", "ExtraNodesRemoved", "FailureNotificationSent"}
	afterWorkers := []string{"PostClusterHealthCheck", "PostUpgradeProcedures", "CompletedNotificationSent"}
	afterCommit := append([]string{
		"ControlPlaneUpgraded", "RemoveControlPlaneMaintWindow", "WorkersMaintWindow", "AllWorkerNodesUpgraded", "RemoveExtraScaledNodes", "RemoveMaintWindow",
	}, afterWorkers...)
	for name, tc := range map[string]struct {
		file    string
		missed  bool // the window is over
		state   engine.UpgradeState
		calls   []string
		outcome engine.Outcome
		reason  string // of the failure
	}{
		"refused":                         {file: "refused", state: engine.Running, calls: append([]string{"CommenceUpgrade", "DelayedNotificationSent"}, afterCommit...), outcome: engine.OutcomeUpgraded},
		"refused until the window closes": {file: "refused", missed: true, state: engine.Running, calls: append([]string{"withdraw"}, cleanup...), outcome: engine.OutcomeFailed, reason: "TargetRefused"},
		"being cleaned up":                {file: "cleaning-up", state: engine.CleaningUp, calls: cleanup, outcome: engine.OutcomeFailed, reason: "TargetRefused"},
		"unknown":                         {file: "unknown", state: engine.Running, calls: afterCommit, outcome: engine.OutcomeUpgraded},
		"in the last health check":        {file: "health", state: engine.Running, calls: afterWorkers, outcome: engine.OutcomeUpgraded},
		"upgraded":                        {file: "upgraded", state: engine.Succeeded, outcome: engine.OutcomeUpgraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata", "record-"+tc.file+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var before history.Record
			if err := json.Unmarshal(raw, &before); err != nil {
				t.Fatal(err)
			}
			var calls []string
			book := stub(OSD{Deps{Config: config.Default()}}.Runbook(Attempt{}), &calls, false)
			last := before.Conditions[len(before.Conditions)-1]
			clock := testingclock.NewFakePassiveClock(last.LastProbeTime.Add(time.Second))
			constraints := engine.Constraints{CommitBy: before.UpgradeAt.Add(30 * time.Minute)}
			if tc.missed {
				clock.SetTime(constraints.CommitBy)
			}
			if got := engine.Summarize(book, before, clock.Now(), constraints).State; got != tc.state {
				t.Errorf("the record is %s, want %s", got, tc.state)
			}
			e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { return nil }}
			after, next, err := e.Pass(t.Context(), book, before, constraints)
			if err != nil || !next.IsZero() {
				t.Errorf("the next pass is at %s, %v", next, err)
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			summary := engine.Summarize(book, after, clock.Now(), constraints)
			if summary.Outcome != tc.outcome || (summary.Failure == nil) != (tc.reason == "") || summary.Failure != nil && summary.Failure.Reason != tc.reason {
				t.Errorf("the outcome is %+v", summary)
			}
			kept := slices.DeleteFunc(slices.Clone(after.Conditions), func(c history.StepCondition) bool { return c.Type == "PreChecksAccepted" })
			for i, c := range before.Conditions { // of a release without that step
				if got := kept[i]; c.CompleteTime != nil && (got.Type != c.Type || got.Reason != c.Reason || !got.StartTime.Equal(c.StartTime) || !got.CompleteTime.Equal(c.CompleteTime)) {
					t.Errorf("the record held %+v, and holds %+v", c, got)
				}
			}
		})
	}
}
