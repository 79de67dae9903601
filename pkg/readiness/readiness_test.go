// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSet(t *testing.T) {
	t.Parallel()
	levels := map[readiness.Level]kstatus.Health{
		readiness.NotDue:      {Ready: "–", Reconciling: "–", Stalled: "–", Slow: "–", Status: "Current"},
		readiness.Ready:       {Ready: "True", Reconciling: "–", Stalled: "–", Slow: "–", Status: "Current"},
		readiness.Reconciling: {Ready: "False", Reconciling: "True", Stalled: "–", Slow: "–", Status: "InProgress"},
		readiness.Waiting:     {Ready: "False", Reconciling: "–", Stalled: "–", Slow: "–", Status: "InProgress"},
		readiness.Unknown:     {Ready: "Unknown", Reconciling: "True", Stalled: "–", Slow: "–", Status: "InProgress"},
		readiness.Stalled:     {Ready: "False", Reconciling: "–", Stalled: "True", Slow: "–", Status: "Failed"},
	}
	for from := range levels {
		for to, want := range levels { // each transition removes the conditions that no longer apply
			hook := &maintenancev1beta1.UpgradeJobHook{}
			readiness.Verdict{Level: from, Reason: "Before"}.Set(&hook.Status.Conditions, 1, noon)
			readiness.Verdict{Level: to, Reason: "After"}.Set(&hook.Status.Conditions, 2, noon.Add(time.Hour))
			if got, err := kstatus.Of(hook); err != nil || got != want {
				t.Errorf("from %d to %d: got %+v, %v, want %+v", from, to, got, err, want)
			}
			for _, c := range hook.Status.Conditions {
				if kept := c.LastTransitionTime.Time.Equal(noon); c.Reason != "After" || from == to && !kept {
					t.Errorf("from %d to %d: condition %+v", from, to, c)
				}
			}
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for status, want := range map[metav1.ConditionStatus]readiness.Level{
		metav1.ConditionTrue: readiness.Ready, metav1.ConditionFalse: readiness.Stalled, metav1.ConditionUnknown: readiness.Stalled,
	} {
		if got := readiness.Of(metav1.Condition{Status: status}, readiness.Stalled).Level; got != want {
			t.Errorf("a condition that is %s is level %d, want %d", status, got, want)
		}
	}
}

// The verdict about a damaged record may have no reason, although the API requires one, or a reason
// that the API rejects.
func TestConditions_have_a_valid_reason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"": "Unspecified", "not valid": "Unspecified", "Valid_1": "Valid_1"} {
		var conditions []metav1.Condition
		readiness.SetAccepted(&conditions, metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue, Reason: reason}, 1, noon)
		for _, c := range conditions {
			if c.Reason != want {
				t.Errorf("condition %s of the reason %q has the reason %q, want %q", c.Type, reason, c.Reason, want)
			}
		}
		if len(conditions) != 2 {
			t.Errorf("got %d conditions, want 2", len(conditions))
		}
	}
	for _, level := range []readiness.Level{readiness.Ready, readiness.Reconciling, readiness.Waiting, readiness.Unknown, readiness.Stalled} {
		for _, c := range (readiness.Verdict{Level: level}).Conditions() {
			if c.Reason == "" {
				t.Errorf("level %d: condition %s has no reason", level, c.Type)
			}
		}
	}
}

// If a clock that was ahead has set a condition, its transition time must not stay in the future.
// The API server also rejects a status with a time that JSON cannot represent.
func TestSetCondition_replaces_an_impossible_time(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ former, want time.Time }{
		"in the past":          {noon.Add(-time.Hour), noon.Add(-time.Hour)},
		"of a clock not ahead": {noon.Add(time.Minute), noon.Add(time.Minute)},
		"of a clock ahead":     {noon.Add(time.Minute + time.Second), noon},
		"none":                 {time.Time{}, noon},
		"after the year 9999":  {time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), noon},
		"before the year 0":    {time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), noon},
	} {
		conditions := []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, Reason: "A", LastTransitionTime: metav1.NewTime(c.former)}}
		readiness.SetCondition(&conditions, metav1.Condition{Type: "A", Status: metav1.ConditionTrue, Reason: "B"}, 1, noon.Add(time.Millisecond))
		if got := conditions[0]; !got.LastTransitionTime.Time.Equal(c.want) || got.Reason != "B" || got.ObservedGeneration != 1 {
			t.Errorf("%s: got %+v, want the time %s", name, got, c.want)
		}
	}
}

// A single message that is too long makes the API server reject the whole status.
func TestSetCondition_bounds_the_message(t *testing.T) {
	t.Parallel()
	var conditions []metav1.Condition
	readiness.SetCondition(&conditions, metav1.Condition{Type: "A", Status: metav1.ConditionTrue, Message: strings.Repeat("ä", 40_000) + "\xff"}, 1, noon)
	readiness.SetCondition(&conditions, metav1.Condition{Type: "B", Status: metav1.ConditionTrue, Message: "a\xffb"}, 1, noon)
	if n := len(conditions[0].Message); n < 4000 || n > 4200 {
		t.Errorf("a message of %d bytes", n)
	}
	if got := conditions[1].Message; got != "a\uFFFDb" {
		t.Errorf("got message %q", got)
	}
	readiness.SetCondition(&conditions, metav1.Condition{Type: "A"}, 1, noon)
	if len(conditions) != 1 || conditions[0].Type != "B" {
		t.Errorf("a condition without a status is not removed: %v", conditions)
	}
}
