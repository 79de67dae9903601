// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestRule_applies_when_its_condition_becomes_true(t *testing.T) {
	t.Parallel()
	type state struct {
		uid, phase string
		deleted    bool
	}
	tests := map[string]struct {
		when   string
		times  int
		states []state
		want   int
	}{
		"false":                                {`object.phase == "b"`, 1, []state{{"1", "a", false}}, 0},
		"missing field":                        {`object.spec.phase == "b"`, 1, []state{{"1", "b", false}}, 0},
		"true at first":                        {`object.phase == "b"`, 1, []state{{"1", "b", false}}, 1},
		"stays true":                           {`object.phase == "b"`, 9, []state{{"1", "b", false}, {"1", "b", false}}, 1},
		"true again":                           {`object.phase == "b"`, 9, []state{{"1", "b", false}, {"1", "a", false}, {"1", "b", false}}, 2},
		"limited times":                        {`object.phase == "b"`, 1, []state{{"1", "b", false}, {"1", "a", false}, {"1", "b", false}}, 1},
		"several objects":                      {`object.phase == "b"`, 9, []state{{"1", "b", false}, {"2", "b", false}}, 2},
		"deleted object":                       {`object.phase == "b"`, 9, []state{{"1", "b", true}}, 0},
		"without a condition, existing object": {"", 9, []state{{"1", "a", false}, {"1", "b", false}}, 1},
		"without a condition, deleted object":  {"", 9, []state{{"1", "a", true}}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fired := 0
			trigger := &trigger{
				rule: &Rule{Name: name}, held: map[types.UID]bool{}, remaining: test.times,
				fire: func(*unstructured.Unstructured) { fired++ },
				fail: func(err error) { t.Error(err) },
				now:  time.Now,
			}
			if test.when != "" {
				compiled, err := compile(test.when)
				if err != nil {
					t.Fatal(err)
				}
				trigger.when = &compiled
			}
			for _, state := range test.states {
				object := &unstructured.Unstructured{Object: map[string]any{"phase": state.phase}}
				object.SetUID(types.UID(state.uid))
				trigger.evaluate(object, state.deleted)
			}
			if fired != test.want {
				t.Errorf("it applied %d times, want %d", fired, test.want)
			}
		})
	}
}

func TestExpectation_matches_status_reason_and_message(t *testing.T) {
	t.Parallel()
	holder := map[string]any{"conditions": []any{
		map[string]any{"type": "Succeeded", "status": "False", "reason": "WindowMissed", "message": "too late"},
	}}
	tests := map[string]struct {
		expected string
		fits     bool
	}{
		"the status":                  {"False", true},
		"another status":              {"True", false},
		"status and reason":           {"False/WindowMissed", true},
		"another reason":              {"False/Superseded", false},
		"status, reason and message":  {"False/WindowMissed: too late", true},
		"another message":             {"False/WindowMissed: too early", false},
		"a part of the reason's name": {"False/Window", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems := checkConditions("it", "condition", holder, map[string]string{"Succeeded": test.expected})
			if fits := len(problems) == 0; fits != test.fits {
				t.Errorf("got %v", problems)
			}
		})
	}
	if problems := checkConditions("it", "condition", nil, map[string]string{"Succeeded": "True"}); len(problems) != 1 {
		t.Errorf("an absent condition counts as there: %v", problems)
	}
}
