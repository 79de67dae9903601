// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// healthRow is a row of the tables in docs/concepts/conditions.md.
type healthRow struct {
	state, ready, reconciling, stalled, kstatus, argocd string
}

// healthRows returns the rows about upgrades and fleets.
func healthRows(t *testing.T) []healthRow {
	t.Helper()
	var rows []healthRow
	columns := map[string]int{}
	for line := range strings.Lines(read(t, "../docs/concepts/conditions.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 2:
			columns = map[string]int{}
		case cells[0] == "state":
			for i, cell := range cells {
				columns[cell] = i
			}
		case len(columns) > 0 && !strings.HasPrefix(cells[0], "---"):
			cell := func(name string) string { return cells[columns[name]] }
			rows = append(rows, healthRow{cells[0], cell("Ready"), cell("Reconciling"), cell("Stalled"), cell("kstatus"), cell("Argo CD")})
		}
	}
	if len(rows) < 25 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// object returns an object in the state described by a row.
func (r healthRow) object() map[string]any {
	var conditions []any
	for kind, status := range map[string]string{"Accepted": "True", "Ready": r.ready, "Reconciling": r.reconciling, "Stalled": r.stalled} {
		if status != "–" {
			conditions = append(conditions, map[string]any{"type": kind, "status": status, "message": "a message", "observedGeneration": 1.0})
		}
	}
	return map[string]any{"metadata": map[string]any{"generation": 1.0}, "status": map[string]any{"conditions": conditions}}
}

// toLua converts a value like Argo CD.
func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, field := range value {
			table.RawSetString(key, toLua(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	}
	return lua.LNil
}

// health returns the result of the script for an object.
func health(t *testing.T, script string, object map[string]any) string {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, is := state.Get(-1).(*lua.LTable)
	if !is {
		t.Fatalf("the script returns %v", state.Get(-1))
	}
	return result.RawGetString("status").String()
}

// TestArgoCD_health runs each kind's script on every state listed in the documentation of
// conditions.
func TestArgoCD_health(t *testing.T) {
	t.Parallel()
	var patch struct {
		Data map[string]string `json:"data"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, "../deploy/gitops/argocd-cm.yaml")), &patch); err != nil || len(patch.Data) < 9 {
		t.Fatalf("%d kinds: %v", len(patch.Data), err)
	}
	script := read(t, "../deploy/gitops/health.lua")
	for key, of := range patch.Data {
		if of != script {
			t.Errorf("%s differs from health.lua", key)
		}
	}
	for _, row := range healthRows(t) {
		if got := health(t, script, row.object()); got != row.argocd {
			t.Errorf("%s: %s, want %s", row.state, got, row.argocd)
		}
	}
	changed := healthRow{ready: "True", reconciling: "–", stalled: "–"}.object()
	changed["metadata"] = map[string]any{"generation": 2.0}
	for name, object := range map[string]map[string]any{"changed": changed, "new": {"metadata": map[string]any{"generation": 1.0}}} {
		if got := health(t, script, object); got != "Progressing" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestFlux_health evaluates the expressions for every state of an upgrade.
func TestFlux_health(t *testing.T) {
	t.Parallel()
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []map[string]string `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../deploy/gitops/flux.yaml")), &kustomization); err != nil || len(kustomization.Spec.HealthCheckExprs) != 1 {
		t.Fatalf("%+v: %v", kustomization, err)
	}
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range healthRows(t) {
		want := "inProgress"
		switch {
		case row.stalled == "True":
			want = "failed"
		case row.ready == "True":
			want = "current"
		}
		for name, expression := range kustomization.Spec.HealthCheckExprs[0] {
			if name == "apiVersion" || name == "kind" {
				continue
			}
			ast, issues := env.Compile(expression)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := program.Eval(row.object())
			if err != nil || got.Value() != (name == want) {
				t.Errorf("%s: %s is %v, %v, want %s", row.state, name, got, err, want)
			}
		}
	}
}
