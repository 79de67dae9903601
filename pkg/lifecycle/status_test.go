// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
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
		"another step is slow":             {history.ConditionStalled, condition{metav1.ConditionTrue, "B", "b"}, false},
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

func TestCondition_is_bounded(t *testing.T) {
	t.Parallel()
	var all []metav1.Condition
	setCondition(&all, history.ConditionAccepted, condition{metav1.ConditionFalse, "A", strings.Repeat("ä", 40_000)}, 1, noon)
	if n := len(all[0].Message); n > 32768 {
		t.Errorf("a message of %d bytes", n)
	}
	for reason, want := range map[string]string{"TargetRefused": "TargetRefused", "": "StepFailed", "not one word": "StepFailed", "1st": "StepFailed"} {
		if got := sanitizeReason(reason); got != want {
			t.Errorf("%q became %q", reason, got)
		}
	}
}
