// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

// documented returns the rows of the table of upgrades in docs/concepts/conditions.md, by their state.
func documented(t *testing.T) map[string]kstatus.Health {
	t.Helper()
	page, err := os.ReadFile("../../docs/concepts/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Upgrades\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]kstatus.Health{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 7 || strings.HasPrefix(cells[0], "| state") {
			continue
		}
		rows[strings.TrimPrefix(cells[0], "| ")] = kstatus.Health{Ready: cells[1], Reconciling: cells[2], Stalled: cells[3], Slow: cells[4], Status: cells[5]}
	}
	return rows
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	at := toMetaTime(noon.Add(119 * time.Minute))
	step := func(name string, status metav1.ConditionStatus, reason string, ended bool) history.StepCondition {
		c := history.StepCondition{Type: name, Status: status, Reason: reason, Message: "why", StartTime: at}
		if ended {
			c.CompleteTime = at
		}
		return c
	}
	checked, commenced := step("Checked", metav1.ConditionTrue, engine.ReasonDone, true), step("Commenced", metav1.ConditionTrue, engine.ReasonDone, true)
	waits := func(reason string) history.StepCondition {
		return step("Commenced", metav1.ConditionFalse, reason, false)
	}
	slow := step("Upgraded", metav1.ConditionFalse, "Waiting", false)
	slow.StartTime = toMetaTime(noon)
	refused := step("Commenced", metav1.ConditionFalse, "TargetRefused", true)
	attempt := func(steps ...history.StepCondition) func(*testScope) summary {
		return func(s *testScope) summary {
			return s.summarize(history.Record{Version: desired, StartTime: at, Conditions: steps})
		}
	}
	ended := func(phase history.Phase, reason string) func(*testScope) summary {
		return func(s *testScope) summary {
			s.record = history.Record{Version: desired, StartTime: at, CompleteTime: at, Phase: phase, Reason: reason, Message: "why"}
			return s.finishedSummary(t.Context())
		}
	}
	states := map[string]func(*testScope) summary{
		"scheduled, its time has not come": func(s *testScope) summary {
			s.upgradeAt = s.now.Add(time.Hour)
			return *s.scheduledStatus(t.Context())
		},
		"invalid": func(s *testScope) summary { return *s.rejectedStatus("Downgrade", "why") },
		"waits for the upgrade that has the lock": func(s *testScope) summary { return *s.lockedStatus("another") },
		"paused or held before it starts": func(s *testScope) summary {
			s.hold, s.upgradeAt = "why", s.now
			return *s.pendingReason(t.Context())
		},
		"the cluster cannot be read before it starts": func(s *testScope) summary { return *s.unreadableStatus(errors.New("why")) },
		"a step runs":    attempt(checked, waits("Waiting")),
		"a step is slow": attempt(checked, commenced, slow),
		"a step waits because the release is refused": attempt(checked, waits("TargetRefused")),
		"paused or held at a step":                    attempt(checked, waits(engine.ReasonPaused)),
		"a step cannot read the cluster":              attempt(checked, step("Commenced", metav1.ConditionUnknown, "CannotObserve", false)),
		"its type is no longer known":                 func(s *testScope) summary { return *s.unknownTypeStatus() },
		"failed, and being cleaned up":                attempt(checked, refused, step("CleanedUp", metav1.ConditionFalse, "Waiting", false)),
		"failed":                                      attempt(checked, refused, step("CleanedUp", metav1.ConditionTrue, engine.ReasonDone, true)),
		"upgraded":                                    attempt(checked, commenced, step("Upgraded", metav1.ConditionTrue, engine.ReasonDone, true)),
		"upgraded, and the spec requests something invalid": func(s *testScope) summary {
			s.plan.Book.Admission = []engine.Gate{{Name: "SpecValid", Check: func(context.Context, engine.Run) (engine.Result, error) {
				return engine.Fail("Downgrade", "why"), nil
			}}}
			return ended(history.PhaseUpgraded, reasonUpgraded)(s)
		},
		"there was nothing to do":                                 func(s *testScope) summary { return *s.alreadyAtVersionStatus("why") },
		"skipped: `AlreadyAtVersion`, `Suspended`, `Rescheduled`": ended(history.PhaseSkipped, "Suspended"),
		"skipped for another reason, such as `Expired`":           ended(history.PhaseSkipped, "Expired"),
	}
	rows := documented(t)
	for name, want := range rows {
		if states[name] == nil {
			t.Errorf("the page has a state without a test: %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScope(stubKind{}, AttemptRequest{Version: desired, At: tenPast})
			s.record.Version = desired
			got, err := kstatus.Of(s.withStatus(s.record, states[name](s)))
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	if len(rows) != len(states) {
		t.Errorf("the page has %d states, and %d are tested", len(rows), len(states))
	}
}

// testScope is a pass over a stub object.
type testScope = scope[*upgradev1alpha1.UpgradeConfig]

// A status that the release before has stored calls a slow step stalled.
func TestFormerStalledBecomesSlow(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(noon.Add(time.Hour))
	for name, stored := range map[string][]metav1.Condition{
		"slow": {{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Upgraded", LastTransitionTime: since}},
		"not":  {{Type: "Stalled", Status: metav1.ConditionFalse, Reason: reasonOnTime, LastTransitionTime: since}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScope(stubKind{}, AttemptRequest{Version: desired, At: tenPast})
			s.obj.Status.Conditions = stored
			began := toMetaTime(noon)
			running := history.StepCondition{Type: "Upgraded", Status: metav1.ConditionFalse, Reason: "Waiting", StartTime: began}
			steps := []history.StepCondition{
				{Type: "Checked", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, StartTime: began, CompleteTime: began},
				{Type: "Commenced", Status: metav1.ConditionTrue, Reason: engine.ReasonDone, StartTime: began, CompleteTime: began},
				running,
			}
			record := history.Record{Version: desired, StartTime: began, Conditions: steps}
			conditions := s.withStatus(record, s.summarize(record)).Status.Conditions
			if meta.FindStatusCondition(conditions, "Stalled") != nil {
				t.Errorf("the condition Stalled stays: %+v", conditions)
			}
			slow := meta.FindStatusCondition(conditions, "Slow")
			if slow == nil || slow.Status != metav1.ConditionTrue {
				t.Fatalf("the condition Slow is %+v", slow)
			}
			if kept := slow.LastTransitionTime.Equal(&since); kept != (name == "slow") {
				t.Errorf("it is slow since %s", slow.LastTransitionTime)
			}
		})
	}
}
