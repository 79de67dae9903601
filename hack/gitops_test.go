// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
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

// kustomization holds the parts of a Kustomization of Flux that decide when it is ready.
type kustomization struct {
	Metadata struct{ Name string }
	Spec     struct {
		DependsOn        []struct{ Name string } `json:"dependsOn"`
		Wait             bool                    `json:"wait"`
		HealthCheckExprs []map[string]string     `json:"healthCheckExprs"`
	}
}

func kustomizations(t *testing.T, file string) []kustomization {
	t.Helper()
	var all []kustomization
	for document := range strings.SplitSeq(read(t, file), "\n---\n") {
		var k kustomization
		if err := yaml.Unmarshal([]byte(document), &k); err != nil || len(k.Spec.HealthCheckExprs) != 1 || !k.Spec.Wait {
			t.Fatalf("%+v: %v", k, err)
		}
		all = append(all, k)
	}
	return all
}

// fluxHealth returns the names of the expressions that are true for an object, separated by spaces.
func (k kustomization) fluxHealth(t *testing.T, object map[string]any) string {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	var healths []string
	for _, name := range []string{"inProgress", "failed", "current"} {
		ast, issues := env.Compile(k.Spec.HealthCheckExprs[0][name])
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		switch got, _, err := program.Eval(object); {
		case err != nil:
			t.Fatal(err)
		case got.Value() == true:
			healths = append(healths, name)
		}
	}
	return strings.Join(healths, " ")
}

// TestFlux_health evaluates the expressions for every state of an upgrade.
func TestFlux_health(t *testing.T) {
	t.Parallel()
	k := kustomizations(t, "../deploy/gitops/flux.yaml")[0]
	for _, row := range healthRows(t) {
		want := "inProgress"
		switch {
		case row.stalled == "True":
			want = "failed"
		case row.ready == "True":
			want = "current"
		}
		if got := k.fluxHealth(t, row.object()); got != want {
			t.Errorf("%s: %s, want %s", row.state, got, want)
		}
	}
}

// TestFlux_hubs evaluates the gate between two hubs: it opens only if the fleet of the first one is complete.
func TestFlux_hubs(t *testing.T) {
	t.Parallel()
	hubs := kustomizations(t, "../deploy/gitops/flux-hubs.yaml")
	if len(hubs) != 2 || len(hubs[0].Spec.DependsOn) > 0 || len(hubs[1].Spec.DependsOn) != 1 || hubs[1].Spec.DependsOn[0].Name != hubs[0].Metadata.Name {
		t.Fatalf("%+v", hubs)
	}
	condition := func(name, status string, observed float64) map[string]any {
		return map[string]any{"type": name, "status": status, "observedGeneration": observed}
	}
	for name, tc := range map[string]struct {
		conditions []any
		want       string
	}{
		"not observed":                  {nil, "inProgress"},
		"waits for a window":            {[]any{condition("Complete", "False", 2)}, "inProgress"},
		"in progress":                   {[]any{condition("Complete", "False", 2), condition("Ready", "False", 2), condition("Reconciling", "True", 2)}, "inProgress"},
		"a dry run without an obstacle": {[]any{condition("Complete", "False", 2), condition("Ready", "True", 2)}, "inProgress"},
		"stopped":                       {[]any{condition("Complete", "False", 2), condition("Stalled", "True", 2)}, "failed"},
		"complete before a change":      {[]any{condition("Complete", "True", 1), condition("Ready", "True", 1)}, "inProgress"},
		"complete":                      {[]any{condition("Complete", "True", 2), condition("Ready", "True", 2)}, "current"},
	} {
		status := map[string]any{}
		if tc.conditions != nil {
			status["conditions"] = tc.conditions
		}
		for _, hub := range hubs {
			if got := hub.fluxHealth(t, map[string]any{"metadata": map[string]any{"generation": 2.0}, "status": status}); got != tc.want {
				t.Errorf("%s: %s: %s, want %s", hub.Metadata.Name, name, got, tc.want)
			}
		}
	}
}

// TestLarger_fleets_feedback parses the feedback rule of the page and reads the condition of an upgrade with it.
func TestLarger_fleets_feedback(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "../docs/concepts/larger-fleets.md"), "```yaml\n")
	block, _, _ := strings.Cut(rest, "```")
	var work workv1.ManifestWorkSpec
	if err := yaml.UnmarshalStrict([]byte(block), &work); err != nil || len(work.ManifestConfigs) != 1 {
		t.Fatalf("%+v: %v", work, err)
	}
	config := work.ManifestConfigs[0]
	definition := config.ResourceIdentifier.Group + "_" + config.ResourceIdentifier.Resource
	if _, err := os.Stat("../deploy/hub/crds/" + definition + ".yaml"); err != nil {
		t.Error(err)
	}
	rule := jsonpath.New("")
	if err := rule.Parse("{" + config.FeedbackRules[0].JsonPaths[0].Path + "}"); err != nil {
		t.Fatal(err)
	}
	var value strings.Builder
	conditions := []any{map[string]any{"type": "Ready", "status": "Unknown"}, map[string]any{"type": "Complete", "status": "True"}}
	if err := rule.Execute(&value, map[string]any{"status": map[string]any{"conditions": conditions}}); err != nil || value.String() != "True" {
		t.Errorf("%q, %v", value.String(), err)
	}
}
