// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestSetConditionMovesTheTimeOfTransitionOnlyWithWhatIsShown(t *testing.T) {
	t.Parallel()
	before := condition{metav1.ConditionTrue, "A", "a"}
	for name, c := range map[string]struct {
		name  string
		now   condition
		moves bool
	}{
		"nothing has changed":               {v1alpha1.ConditionAccepted, before, false},
		"the message has":                   {v1alpha1.ConditionAccepted, condition{metav1.ConditionTrue, "A", "b"}, false},
		"the reason has":                    {v1alpha1.ConditionAccepted, condition{metav1.ConditionTrue, "B", "b"}, false},
		"the status has":                    {v1alpha1.ConditionAccepted, condition{metav1.ConditionFalse, "A", "a"}, true},
		"the step has":                      {v1alpha1.ConditionProgressing, condition{metav1.ConditionTrue, "B", "b"}, true},
		"the message of the same step has":  {v1alpha1.ConditionProgressing, condition{metav1.ConditionTrue, "A", "b"}, false},
		"whether the step can be seen has":  {v1alpha1.ConditionProgressing, condition{metav1.ConditionUnknown, "A", "a"}, true},
		"what takes long is another step":   {v1alpha1.ConditionStalled, condition{metav1.ConditionTrue, "B", "b"}, false},
		"how it ended is told more exactly": {v1alpha1.ConditionSucceeded, condition{metav1.ConditionTrue, "B", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []metav1.Condition
			setCondition(&all, c.name, before, 1, noon)
			setCondition(&all, c.name, c.now, 2, noon.Add(time.Hour))
			since := *toMetaTime(noon)
			if c.moves {
				since = *toMetaTime(noon.Add(time.Hour))
			}
			want := []metav1.Condition{{
				Type: c.name, Status: c.now.status, Reason: c.now.reason, Message: c.now.message, ObservedGeneration: 2, LastTransitionTime: since,
			}}
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			setCondition(&all, c.name, condition{}, 3, noon)
			if len(all) > 0 {
				t.Errorf("it was not removed: %v", all)
			}
		})
	}
}

func TestAConditionIsNeverTooLongForTheAPI(t *testing.T) {
	t.Parallel()
	var all []metav1.Condition
	setCondition(&all, v1alpha1.ConditionAccepted, condition{metav1.ConditionFalse, "A", strings.Repeat("ä", 40_000)}, 1, noon)
	if n := len(all[0].Message); n > 32768 {
		t.Errorf("a message of %d bytes", n)
	}
	for reason, want := range map[string]string{"TargetRefused": "TargetRefused", "": "StepFailed", "not one word": "StepFailed", "1st": "StepFailed"} {
		if got := sanitizeReason(reason); got != want {
			t.Errorf("%q became %q", reason, got)
		}
	}
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	at := toMetaTime(noon)
	current := &history.StepCondition{Type: "PreHealthCheck", Status: metav1.ConditionFalse, Reason: "ClusterUnhealthy", Message: "ill", StartTime: at}
	blind := &history.StepCondition{Type: "PreHealthCheck", Status: metav1.ConditionUnknown, Reason: "CannotObserve", Message: "no route", StartTime: at}
	failure := &history.StepCondition{Type: "CommenceUpgrade", Reason: "TargetRefused", Message: "not signed"}
	onTime := condition{metav1.ConditionFalse, reasonOnTime, "no step takes longer than it should"}
	accepted := condition{metav1.ConditionTrue, reasonValid, "the version and the type are valid, and no other upgrade is under way"}

	for name, c := range map[string]struct {
		verdict engine.Summary
		paused  bool
		want    summary
	}{
		"a step waits": {
			verdict: engine.Summary{State: engine.Running, Current: current, Deadline: noon},
			want: summary{
				phase: history.PhaseUpgrading, accepted: accepted, stalled: onTime, nextTransition: noon,
				progressing: condition{metav1.ConditionTrue, "PreHealthCheck", "ill"},
			},
		},
		"a step waits, and it is paused": {
			verdict: engine.Summary{State: engine.Running, Current: current},
			paused:  true,
			want: summary{
				phase: history.PhaseUpgrading, accepted: accepted, stalled: onTime,
				progressing: condition{metav1.ConditionTrue, "PreHealthCheck", "ill"},
			},
		},
		"a step takes long, and it is paused too late": {
			verdict: engine.Summary{State: engine.Running, Committed: true, Current: current, Stalled: true},
			paused:  true,
			want: summary{
				phase: history.PhaseUpgrading, accepted: accepted,
				stalled:     condition{metav1.ConditionTrue, "PreHealthCheck", "PreHealthCheck began at 2026-03-01T12:00:00Z and takes longer than it should: ill"},
				progressing: condition{metav1.ConditionTrue, "PreHealthCheck", "ill (spec.paused has no effect once the upgrade has commenced)"},
			},
		},
		"a step cannot find out": {
			verdict: engine.Summary{State: engine.Running, Current: blind},
			want: summary{
				phase: history.PhaseUnknown, accepted: accepted, stalled: onTime,
				progressing: condition{metav1.ConditionUnknown, reasonCannotObserve, "PreHealthCheck: no route"},
			},
		},
		"it is cleaned up after a failure, and a step cannot find out": {
			verdict: engine.Summary{State: engine.CleaningUp, Failure: failure, Current: blind},
			want: summary{
				phase: history.PhaseFailed, accepted: accepted, stalled: onTime,
				progressing: condition{metav1.ConditionUnknown, reasonCannotObserve, "PreHealthCheck: no route"},
				succeeded:   condition{metav1.ConditionFalse, "TargetRefused", "CommenceUpgrade: not signed"},
			},
		},
		"it has failed": {
			verdict: engine.Summary{State: engine.Failed, Failure: failure},
			want: summary{
				phase: history.PhaseFailed, accepted: accepted, stalled: onTime, finished: true,
				progressing: condition{metav1.ConditionFalse, reasonFailed, "the upgrade to 4.4.6 was given up: CommenceUpgrade: not signed"},
				succeeded:   condition{metav1.ConditionFalse, "TargetRefused", "CommenceUpgrade: not signed"},
			},
		},
		"it is complete": {
			verdict: engine.Summary{State: engine.Succeeded, Committed: true},
			paused:  true,
			want: summary{
				phase: history.PhaseUpgraded, accepted: accepted, stalled: onTime, finished: true,
				progressing: condition{metav1.ConditionFalse, reasonUpgraded, "the upgrade to 4.4.6 is complete"},
				succeeded:   condition{metav1.ConditionTrue, reasonUpgraded, "the cluster was upgraded to 4.4.6"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := summarize(history.Record{Version: desired}, c.verdict, c.paused)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(summary{}, condition{})); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfShowsTheTimesOfTheWorkers(t *testing.T) {
	t.Parallel()
	from, to := toMetaTime(noon), toMetaTime(noon.Add(time.Hour))
	record := history.Record{Version: desired, Conditions: []history.StepCondition{{Type: workersStep, StartTime: from, CompleteTime: to}}}
	status := buildStatus(upgradeConfig(upgrade), record, summary{phase: history.PhaseUpgrading}, "", noon)
	got := status.History[0]
	if !got.WorkerStartTime.Equal(from) || !got.WorkerCompleteTime.Equal(to) {
		t.Errorf("the workers took from %s to %s", got.WorkerStartTime, got.WorkerCompleteTime)
	}
	if got.CompleteTime != nil {
		t.Error("it is not complete")
	}
}
