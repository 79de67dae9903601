// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package celexpr

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func certificate(status string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "api", "labels": map[string]any{"app": "shop"}},
		"spec":     map[string]any{"replicas": int64(3)},
		"status": map[string]any{
			"readyReplicas": float64(3),
			"conditions":    []any{map[string]any{"type": "Ready", "status": status}},
		},
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	const ready = `object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`
	for name, tc := range map[string]struct {
		expression, status string
		want               bool
		err                string
	}{
		"a condition that holds":       {ready, "True", true, ""},
		"a condition that does not":    {ready, "False", false, ""},
		"numbers of two types":         {"object.status.readyReplicas == object.spec.replicas", "", true, ""},
		"an absent field, guarded":     {"has(object.status.phase) && object.status.phase == 'Ready'", "", false, ""},
		"an absent field, optional":    {"object.?status.?phase.orValue('') == 'Ready'", "", false, ""},
		"a function of texts":          {"object.metadata.name.lowerAscii() == 'api'", "", true, ""},
		"an absent field":              {"object.status.phase == 'Ready'", "", false, "no such key: phase"},
		"a field that is no bool":      {"object.metadata.name", "", false, "returns a string, not a bool"},
		"an expression that is broken": {"object.", "", false, "column "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Evaluator{}.Holds(t.Context(), tc.expression, certificate(tc.status))
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %t, %v; want %t, %q", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"true":              "",
		"object.spec.ready": "",
		"object.spec.":      "column 13: Syntax error",
		"objekt.spec.ready": "column 1: undeclared reference to 'objekt'",
		"1 + 1":             "must return a bool, returns int",
		"'" + strings.Repeat("x", MaxLength) + "' == ''": "must have at most 1024 bytes",
		"": "column ",
	} {
		if err := (Evaluator{}).Compile(expression); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", expression, err, want)
		}
	}
}

// The cost is limited for all objects and expressions.
func TestHolds_is_bounded(t *testing.T) {
	t.Parallel()
	items := make([]any, 2000)
	for i := range items {
		items[i] = int64(i)
	}
	object := map[string]any{"items": items}
	const nested = "object.items.all(a, object.items.all(b, a + b >= 0))"
	if _, err := (Evaluator{}).Holds(t.Context(), nested, object); err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Evaluator{}).Holds(ctx, nested, object); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("canceled: got %v", err)
	}
	for i := range 2 * maxCompiled {
		if err := (Evaluator{}).Compile(fmt.Sprintf("object.x == %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(compiled) > maxCompiled {
		t.Errorf("%d expressions are kept", len(compiled))
	}
}
