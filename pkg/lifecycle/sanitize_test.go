// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// statusValidator validates the status of UpgradeConfigs as the API server does.
type statusValidator struct {
	validator  validation.SchemaValidator
	structural *structuralschema.Structural
}

func statusSchema(tb testing.TB) statusValidator {
	tb.Helper()
	data, err := os.ReadFile("../../deploy/crds/upgrade.managed.openshift.io_upgradeconfigs.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		tb.Fatal(err)
	}
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&status, &props, nil); err != nil {
		tb.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		tb.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		tb.Fatal(err)
	}
	return statusValidator{validator, structural}
}

func (s statusValidator) validate(tb testing.TB, status any) field.ErrorList {
	tb.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		tb.Fatal(err)
	}
	return append(validation.ValidateCustomResource(nil, content, s.validator), listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
}

// foreignStatus returns a status as another client may have written it, at the limits of the schema.
func foreignStatus(r *rand.Rand) map[string]any {
	times := []string{
		"0000-01-01T00:00:00+12:00", "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-03-01T12:10:00Z", "2026-03-01T12:20:00.999999999Z",
		"9999-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00",
	}
	at := func() any { return times[r.IntN(len(times))] }
	word := func(limit int) string {
		return []string{"Upgraded", "a", "not one word", "ä\u0000\u202e%s", strings.Repeat("x", limit), "Commenced", "Checked", "CleanedUp"}[r.IntN(8)]
	}
	bounded := func(limit int) string { w := word(limit); return w[:min(len(w), limit)] }
	fields := func(all map[string]any) map[string]any {
		for _, key := range slices.Sorted(maps.Keys(all)) { // one seed, one status
			if key != "attempt" && key != "type" && key != "version" && key != "status" && r.IntN(3) == 0 {
				delete(all, key)
			}
		}
		return all
	}
	list := func(limit int, one func(int) any) []any {
		all := make([]any, []int{0, 1, limit - 1, limit}[r.IntN(4)])
		for i := range all {
			all[i] = one(i)
		}
		return all
	}
	names := []string{"Checked", "Commenced", "Upgraded", "CleanedUp"}
	step := func(i int) any {
		name := fmt.Sprintf("Step%d%s", i, strings.Repeat("y", r.IntN(2)*100))
		if i < len(names) && r.IntN(2) == 0 {
			name = names[i]
		}
		return fields(map[string]any{
			"type": name, "status": []string{"True", "False", "Unknown"}[r.IntN(3)], "reason": word(1024), "message": word(32768),
			"startTime": at(), "completeTime": at(), "lastProbeTime": at(), "lastTransitionTime": at(), "reasonTime": at(),
			"milestone":  []string{"Started", "Commenced", "Completed", "Failed"}[r.IntN(4)],
			"lastAnswer": fields(map[string]any{"reason": word(1024), "message": word(1024)}),
			"items":      []any{map[string]any{"name": "Start/hook", "status": bounded(64), "message": word(1024)}},
		})
	}
	record := func(i int) any {
		version := fmt.Sprintf("4.4.%d", i+5)
		return fields(map[string]any{
			"version": version, "phase": []string{"New", "Pending", "Upgrading", "Upgraded", "Failed", "Unknown"}[r.IntN(6)],
			"attempt": []int64{1, 7, 1<<31 - 1}[r.IntN(3)], "upgradeAt": at(), "startTime": at(), "commenceTime": at(), "completeTime": at(),
			"requestTime": at(), "workerStartTime": at(), "workerCompleteTime": at(), "notifiedTime": at(),
			"precedingChannel": bounded(256), "channels": list(8, func(i int) any { return fmt.Sprintf("stable-4.%d", i) }), "reason": bounded(256), "message": word(4096), "precedingVersion": word(128),
			"conditions": list(64, step),
			"previousAttempts": list(3, func(int) any {
				return fields(map[string]any{"status": nil, "attempt": 1, "completeTime": at(), "message": word(4096)})
			}),
		})
	}
	condition := func(i int) any {
		return map[string]any{
			"type":   append([]string{"Accepted", "Progressing", "Succeeded", "Slow", "PreCheckPassed", "Degraded"}, "Foreign1", "Foreign2", "Foreign3", "Foreign4", "Foreign5", "Foreign6", "Foreign7", "Foreign8", "Foreign9", "Foreign10")[i],
			"status": "True", "reason": "Foreign", "message": word(32768), "lastTransitionTime": at(), "observedGeneration": r.Int64(),
		}
	}
	return map[string]any{
		"conditions": list(16, condition), "history": list(16, record), "nextTime": at(), "observedGeneration": 1 + r.Int64()/2,
	}
}

// checkNextStatus builds what is written next over a foreign status in every situation and validates it.
func checkNextStatus(t *testing.T, s statusValidator, seed uint64) (accepted bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	foreign := foreignStatus(r)
	data, err := json.Marshal(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if errs := s.validate(t, foreign); len(errs) > 0 {
		return false
	}
	for name, next := range map[string]func(*scope[testObject]) (history.Record, summary){
		"pending": func(p *scope[testObject]) (history.Record, summary) {
			return p.record, *p.pendingStatus(reasonScheduled, "later", tenPast)
		},
		"rejected": func(p *scope[testObject]) (history.Record, summary) {
			return p.record, *p.rejectedStatus("Downgrade", "older")
		},
		"locked": func(p *scope[testObject]) (history.Record, summary) { return p.record, *p.lockedStatus("another") },
		"unreadable": func(p *scope[testObject]) (history.Record, summary) {
			return p.record, *p.unreadableStatus(errors.New("no\xff route"))
		},
		"missed":   func(p *scope[testObject]) (history.Record, summary) { return p.record, *p.windowMissedStatus() },
		"finished": func(p *scope[testObject]) (history.Record, summary) { return p.record, p.finishedSummary(t.Context()) },
		"running": func(p *scope[testObject]) (history.Record, summary) {
			if p.record.Finished() {
				return p.record, p.finishedSummary(t.Context())
			}
			for _, table := range [][]engine.Step{p.plan.Book.Steps, p.plan.Book.Cleanup} {
				for i := range table {
					p.record.Conditions = append(p.record.Conditions, history.StepCondition{Type: table[i].Name, Status: metav1.ConditionFalse, StartTime: toMetaTime(noon)})
				}
			}
			seen := map[string]bool{}
			var conditions []history.StepCondition
			for _, c := range p.record.Conditions {
				if !seen[c.Type] {
					conditions = append(conditions, c)
				}
				seen[c.Type] = true
			}
			p.record.Conditions = conditions
			if len(conditions) > 64 {
				t.Errorf("seed %d: no room for the steps of the runbook among %d", seed, len(conditions))
			}
			return p.record, p.summarize(p.record)
		},
	} {
		kind := stubKind{seen: Observation{Version: "4.4.5"}}
		p := stubScope(kind, AttemptRequest{Version: desired, At: tenPast})
		p.obj.Generation, p.log = 2, logr.Discard()
		if err := json.Unmarshal(data, &p.obj.Status); err != nil {
			t.Fatalf("seed %d: an accepted status cannot be decoded: %v", seed, err)
		}
		p.setAttempt(currentRecord(Status{History: &p.obj.Status.History}, p.request, ByVersion), "OSD")
		record, sum := next(p)
		p.buildStatus(kind.Status(p.obj), record, sum)
		if errs := s.validate(t, p.obj.Status); len(errs) > 0 {
			t.Errorf("seed %d: the status %s is rejected: %v", seed, name, errs.ToAggregate())
		}
	}
	return true
}

func TestStatus_is_valid_from_any_state(t *testing.T) {
	t.Parallel()
	s := statusSchema(t)
	accepted := 0
	seeds := simulation.Sample(12)
	for _, seed := range seeds {
		if checkNextStatus(t, s, uint64(seed)) {
			accepted++
		}
	}
	if accepted < len(seeds)*9/10 {
		t.Errorf("only %d of %d foreign statuses are accepted: the test tries little", accepted, len(seeds))
	}
}

func FuzzStatus_is_valid_from_any_state(f *testing.F) {
	s := statusSchema(f)
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkNextStatus(t, s, seed) })
}

// The steps of the runbook have room beside those that this release does not know.
func TestFitSteps(t *testing.T) {
	t.Parallel()
	book := engine.Runbook{Steps: []engine.Step{{Name: "First"}, {Name: "Second", FormerNames: []string{"Former"}}}}
	unknown := make([]history.StepCondition, 0, maxSteps)
	for i := range maxSteps {
		unknown = append(unknown, history.StepCondition{Type: fmt.Sprintf("Unknown%d", i)})
	}
	got := fitSteps(append(unknown, history.StepCondition{Type: "Former"}), book)
	names := len(book.Steps) + 1 // with the former name
	if len(got) != maxSteps-names+1 || got[len(got)-1].Type != "Former" || got[len(got)-2].Type != fmt.Sprintf("Unknown%d", maxSteps-names-1) {
		t.Errorf("%d conditions, the last ones are %s and %s", len(got), got[len(got)-2].Type, got[len(got)-1].Type)
	}
}
