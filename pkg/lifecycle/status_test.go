// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

func TestSetCondition_keeps_the_transition_time_of_an_unchanged_condition(t *testing.T) {
	t.Parallel()
	before := condition{metav1.ConditionTrue, "A", "a"}
	for name, c := range map[string]struct {
		name  string
		now   condition
		moves bool
	}{
		"unchanged":                        {history.ConditionAccepted, before, false},
		"the message has":                  {history.ConditionAccepted, condition{metav1.ConditionTrue, "A", "b"}, false},
		"the reason has":                   {history.ConditionAccepted, condition{metav1.ConditionTrue, "B", "b"}, false},
		"the status has":                   {history.ConditionAccepted, condition{metav1.ConditionFalse, "A", "a"}, true},
		"the step has":                     {history.ConditionProgressing, condition{metav1.ConditionTrue, "B", "b"}, true},
		"the message of the same step has": {history.ConditionProgressing, condition{metav1.ConditionTrue, "A", "b"}, false},
		"whether the step can be seen has": {history.ConditionProgressing, condition{metav1.ConditionUnknown, "A", "a"}, true},
		"another step is slow":             {history.ConditionSlow, condition{metav1.ConditionTrue, "B", "b"}, false},
		"more specific result":             {history.ConditionSucceeded, condition{metav1.ConditionTrue, "B", "b"}, false},
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

// A kind may complete a status that the record alone would show differently: what is shown again has not changed.
func TestTransition_that_is_undone_keeps_its_time(t *testing.T) {
	t.Parallel()
	at := func(reason string, status metav1.ConditionStatus, time time.Time) []metav1.Condition {
		return []metav1.Condition{{Type: history.ConditionProgressing, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(time)}}
	}
	for name, built := range map[string][]metav1.Condition{
		"of the reason": at("TimedOut", metav1.ConditionFalse, noon),
		"of the status": at("LateSuccess", metav1.ConditionTrue, noon),
	} {
		before, after := at("LateSuccess", metav1.ConditionFalse, noon.Add(-time.Hour)), at("LateSuccess", metav1.ConditionFalse, noon)
		keepTransitions(before, built, after)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	before, after := at("LateSuccess", metav1.ConditionFalse, noon.Add(-time.Hour)), at("LateSuccess", metav1.ConditionFalse, noon)
	keepTransitions(before, slices.Clone(after), after)
	if !after[0].LastTransitionTime.Time.Equal(noon) {
		t.Errorf("the time of the record is replaced by %s", after[0].LastTransitionTime)
	}
}

func TestReason_is_valid(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"TargetRefused": "TargetRefused", "": "StepFailed", "not one word": "StepFailed", "1st": "StepFailed"} {
		if got := sanitizeReason(reason); got != want {
			t.Errorf("%q became %q", reason, got)
		}
	}
}

// Earlier releases recorded no reason for the end of an attempt.
func TestRecordedOutcome_of_an_earlier_release_is_that_of_the_failed_step(t *testing.T) {
	t.Parallel()
	step := func(name string, status metav1.ConditionStatus, reason, message string) history.StepCondition {
		return history.StepCondition{Type: name, Status: status, Reason: reason, Message: message, CompleteTime: toMetaTime(noon)}
	}
	s := &scope[*upgradev1alpha1.UpgradeConfig]{}
	got := s.recordedOutcome(history.Record{Phase: history.PhaseFailed, Conditions: []history.StepCondition{
		step("PreHealthCheck", metav1.ConditionTrue, "Done", "the cluster is healthy"),
		step("ControlPlaneUpgraded", metav1.ConditionFalse, "Superseded", "4.4.7 is requested"),
	}})
	if want := (outcome{"Superseded", "ControlPlaneUpgraded: 4.4.7 is requested"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
