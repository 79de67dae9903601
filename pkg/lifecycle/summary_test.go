// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

// testObject is described by stubKind.
type testObject = *upgradev1alpha1.UpgradeConfig

// stubKind is a kind whose objects have no version of their own: what it returns is fixed.
type stubKind struct {
	seen Observation
	err  error
}

func (stubKind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Job"}
}
func (stubKind) Finalizer() string                   { return "example.com/finalizer" }
func (stubKind) New() *upgradev1alpha1.UpgradeConfig { return &upgradev1alpha1.UpgradeConfig{} }
func (stubKind) HistoryKey() HistoryKey              { return ByVersion }
func (stubKind) LockKey(*upgradev1alpha1.UpgradeConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: "locks", Name: lock.Name}
}

func (stubKind) List(context.Context, client.Reader) ([]*upgradev1alpha1.UpgradeConfig, error) {
	return nil, nil
}

func (stubKind) Status(obj *upgradev1alpha1.UpgradeConfig) Status {
	return Status{
		Conditions: &obj.Status.Conditions, ObservedGeneration: &obj.Status.ObservedGeneration,
		NextTime: &obj.Status.NextTime, History: &obj.Status.History,
	}
}

func (stubKind) Request(*upgradev1alpha1.UpgradeConfig) AttemptRequest {
	return AttemptRequest{Version: desired, At: tenPast}
}

func (k stubKind) Plan(*upgradev1alpha1.UpgradeConfig, history.Record, string, engine.UpgradeStep) AttemptPlan {
	observe := func(context.Context, history.Record) (Observation, error) { return k.seen, k.err }
	return AttemptPlan{Known: true, Book: stubBook(), Window: 30 * time.Minute, Retry: "ask again", Observe: observe}
}
func (stubKind) Hold(context.Context) (string, error)         { return "", nil }
func (stubKind) CacheIsCurrent(context.Context) (bool, error) { return true, nil }

func stubBook() engine.Runbook {
	return engine.Runbook{
		Steps:   []engine.Step{{Name: "Checked"}, {Name: "Commenced", Commit: &engine.Commit{}}, {Name: "Upgraded", SlowAfter: time.Hour}},
		Cleanup: []engine.Step{{Name: "CleanedUp"}},
	}
}

// stubScope returns a pass over a stub object two hours after noon.
func stubScope(kind stubKind, request AttemptRequest) *scope[*upgradev1alpha1.UpgradeConfig] {
	r := &Reconciler[*upgradev1alpha1.UpgradeConfig]{Kind: kind, Clock: clocktesting.NewFakePassiveClock(noon.Add(2 * time.Hour))}
	return &scope[*upgradev1alpha1.UpgradeConfig]{
		Reconciler: r, obj: kind.New(), request: request, upgradeAt: tenPast, plan: kind.Plan(nil, history.Record{}, "", nil), now: r.Clock.Now(),
	}
}

// Two processes whose clocks differ would otherwise write it in turn once the window is over for one of them.
func TestStatusOfAnAttemptThatWaitsForTheLockDoesNotDependOnTheClock(t *testing.T) {
	t.Parallel()
	s := stubScope(stubKind{}, AttemptRequest{Version: desired, At: tenPast})
	s.now = s.windowEnd().Add(-time.Second)
	before := s.lockedStatus("another upgrade")
	s.now = s.windowEnd()
	if after := s.lockedStatus("another upgrade"); !reflect.DeepEqual(before, after) {
		t.Errorf("in the window %+v, after it %+v", before, after)
	}
	if !before.nextTransition.Equal(s.windowEnd()) {
		t.Errorf("it waits until %s, want the end of the window", before.nextTransition)
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	at := toMetaTime(noon)
	running := func(name string) history.StepCondition {
		return history.StepCondition{Type: name, Status: metav1.ConditionFalse, Reason: "Waiting", Message: "not yet", StartTime: at}
	}
	done := func(name string) history.StepCondition {
		return history.StepCondition{Type: name, Status: metav1.ConditionTrue, Reason: engine.ReasonDone, StartTime: at, CompleteTime: at}
	}
	failed := func(name string) history.StepCondition {
		return history.StepCondition{Type: name, Status: metav1.ConditionFalse, Reason: "TargetRefused", Message: "not signed", StartTime: at, CompleteTime: at}
	}
	unknown := func(name string) history.StepCondition {
		c := running(name)
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "CannotObserve", "no route"
		return c
	}
	onTime := condition{metav1.ConditionFalse, reasonOnTime, "no step is slow"}
	accepted := condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid, and no other upgrade is in progress"}
	windowEnd := tenPast.Add(30 * time.Minute)
	failure := outcome{"TargetRefused", "Commenced: not signed"}
	lost := condition{metav1.ConditionFalse, "TargetRefused", "Commenced: not signed; to try again, ask again"}

	for name, c := range map[string]struct {
		steps  []history.StepCondition
		paused string
		want   summary
	}{
		"a step waits": {
			steps: []history.StepCondition{running("Checked")},
			want: summary{
				phase: history.PhaseUpgrading, accepted: accepted, slow: onTime, nextTransition: windowEnd,
				progressing: condition{metav1.ConditionTrue, "Checked", "not yet (until 2026-03-01T12:40:00Z)"},
			},
		},
		"a step is slow and paused too late": {
			steps:  []history.StepCondition{done("Checked"), done("Commenced"), running("Upgraded")},
			paused: "paused",
			want: summary{
				phase: history.PhaseUpgrading, accepted: accepted,
				slow: condition{metav1.ConditionTrue, "Upgraded", "Upgraded started at 2026-03-01T12:00:00Z and is slow: not yet"},
				progressing: condition{
					metav1.ConditionTrue, "Upgraded",
					"slow since 2026-03-01T13:00:00Z: not yet (paused: no effect once the upgrade has commenced)",
				},
			},
		},
		"a step cannot determine its state": {
			steps: []history.StepCondition{done("Checked"), done("Commenced"), unknown("Upgraded")},
			want: summary{
				phase: history.PhaseUnknown, accepted: accepted,
				slow:        condition{metav1.ConditionTrue, "Upgraded", "Upgraded started at 2026-03-01T12:00:00Z and is slow: no route"},
				progressing: condition{metav1.ConditionUnknown, reasonCannotObserve, "Upgraded: slow since 2026-03-01T13:00:00Z: no route"},
			},
		},
		"it is cleaned up and a step cannot determine its state": {
			steps: []history.StepCondition{done("Checked"), failed("Commenced"), unknown("CleanedUp")},
			want: summary{
				phase: history.PhaseFailed, accepted: accepted, slow: onTime, outcome: failure, succeeded: condition{metav1.ConditionFalse, "TargetRefused", "Commenced: not signed"},
				progressing: condition{metav1.ConditionUnknown, reasonCannotObserve, "CleanedUp: failed: Commenced: not signed; cleaning up: no route"},
			},
		},
		"it has failed": {
			steps: []history.StepCondition{done("Checked"), failed("Commenced"), done("CleanedUp")},
			want: summary{
				phase: history.PhaseFailed, accepted: accepted, slow: onTime, outcome: failure, succeeded: lost, finished: true,
				progressing: condition{metav1.ConditionFalse, "Commenced", "failed: Commenced: not signed; to try again, ask again"},
			},
		},
		"it is complete": {
			steps:  []history.StepCondition{done("Checked"), done("Commenced"), done("Upgraded")},
			paused: "paused",
			want: summary{
				phase: history.PhaseUpgraded, accepted: accepted, slow: onTime, finished: true,
				outcome:     outcome{reasonUpgraded, "upgraded to 4.4.6"},
				progressing: condition{metav1.ConditionFalse, reasonUpgraded, "upgraded to 4.4.6"},
				succeeded:   condition{metav1.ConditionTrue, reasonUpgraded, "upgraded to 4.4.6"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stubScope(stubKind{}, AttemptRequest{Version: desired, At: tenPast, Paused: c.paused})
			got := s.summarize(history.Record{Version: desired, StartTime: at, Conditions: c.steps})
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(summary{}, condition{}, outcome{})); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpgradedOutcome(t *testing.T) {
	t.Parallel()
	for want, record := range map[string]history.Record{
		"upgraded from 4.4.5 to 4.4.6":                           {Version: "4.4.6", PrecedingVersion: "4.4.5"},
		"upgraded to 4.4.6":                                      {Version: "4.4.6", PrecedingVersion: "4.4.6"},
		"there was no version to upgrade to; the hooks have run": {PrecedingVersion: "4.4.5"},
	} {
		if got := upgradedOutcome(record).message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBuildStatusShowsTheTimesOfTheWorkers(t *testing.T) {
	t.Parallel()
	from, to := toMetaTime(noon), toMetaTime(noon.Add(time.Hour))
	s := stubScope(stubKind{}, AttemptRequest{})
	record := history.Record{Version: desired, Conditions: []history.StepCondition{{Type: "Workers", Milestone: engine.MilestoneWorkersUpgraded, StartTime: from, CompleteTime: to}}}
	s.buildStatus(s.Kind.Status(s.obj), record, summary{phase: history.PhaseUpgrading})
	got := s.obj.Status.History[0]
	if !got.WorkerStartTime.Equal(from) || !got.WorkerCompleteTime.Equal(to) || got.CompleteTime != nil {
		t.Errorf("the workers took from %s to %s, complete %s", got.WorkerStartTime, got.WorkerCompleteTime, got.CompleteTime)
	}
}
