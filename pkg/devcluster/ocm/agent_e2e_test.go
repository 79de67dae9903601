// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// settle is how long the real agent has to report what the simulated one reports.
const settle = 20 * time.Second

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// deployment returns a Deployment without pods. Its spec has these fields in addition to the required ones.
func deployment(name string, spec map[string]any) workv1.Manifest {
	all := map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": name}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": name}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a:1"}, map[string]any{"name": "b", "image": "b:1"}}},
		},
	}
	maps.Copy(all, spec)
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "name": name}, "spec": all}}
	object.SetGroupVersionKind(deployments)
	raw, _ := json.Marshal(object) // a tree of plain values
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
}

// configured returns the configuration of a Deployment as this project writes it.
func configured(name string, strategy workv1.UpdateStrategyType, paths ...workv1.JsonPath) workv1.ManifestConfigOption {
	option := workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "default", Name: name},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: strategy},
	}
	if strategy == workv1.UpdateStrategyTypeServerSideApply {
		option.UpdateStrategy.ServerSideApply = &workv1.ServerSideApplyConfig{Force: true, FieldManager: "work-agent-mcu"}
	}
	if len(paths) > 0 {
		option.FeedbackRules = []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}}
	}
	return option
}

// wellKnownStatus adds the rule to report the well-known status of a Deployment, which is empty without pods, and
// of a kind that has none.
func wellKnownStatus(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	settings := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "well-known"}}`
	rule := workv1.FeedbackRule{Type: workv1.WellKnownStatusType}
	spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(settings)}})
	spec.ManifestConfigs[0].FeedbackRules = append([]workv1.FeedbackRule{rule}, spec.ManifestConfigs[0].FeedbackRules...)
	spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "default", Name: "well-known"}, FeedbackRules: []workv1.FeedbackRule{rule},
	})
	return spec
}

// workSpec returns the spec of a work with one Deployment.
func workSpec(manifest workv1.Manifest, option workv1.ManifestConfigOption, deletion *workv1.DeleteOption) workv1.ManifestWorkSpec {
	return workv1.ManifestWorkSpec{
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{manifest}}, ManifestConfigs: []workv1.ManifestConfigOption{option}, DeleteOption: deletion,
	}
}

// agentCases returns, by the name of the only object, the works that contain it. Each work has the specs that
// follow one another, and is then deleted.
func agentCases() map[string][][]workv1.ManifestWorkSpec {
	path := func(name, path string) workv1.JsonPath { return workv1.JsonPath{Name: name, Path: path} }
	paths := []workv1.JsonPath{
		path("integer", ".spec.replicas"), path("bool", ".spec.paused"), path("string", ".metadata.name"),
		path("missing", ".status.none"), path("missing-parent", ".status.none.more"), path("missing-index", ".spec.template.spec.containers[5].name"),
		path("many", ".spec.template.spec.containers[*].name"), path("object", ".spec.selector"), path("list", ".spec.template.spec.containers[0]['name','image']"),
		path("filter", `.spec.template.spec.containers[?(@.name=="b")].image`), path("no-match", `.spec.template.spec.containers[?(@.name=="c")].image`),
		path("filter-missing", `.status.none[?(@.type=="Available")].status`),
	}
	orphan := &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	selective := &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{
		OrphaningRules: []workv1.OrphaningRule{{Group: "apps", Resource: "deployments", Namespace: "default", Name: "selected"}},
	}}
	const ssa, readOnly, createOnly = workv1.UpdateStrategyTypeServerSideApply, workv1.UpdateStrategyTypeReadOnly, workv1.UpdateStrategyTypeCreateOnly
	paused := map[string]any{"paused": true, "minReadySeconds": int64(5)}
	return map[string][][]workv1.ManifestWorkSpec{
		"feedback":     {{workSpec(deployment("feedback", paused), configured("feedback", ssa, paths...), nil)}},
		"no-feedback":  {{workSpec(deployment("no-feedback", nil), configured("no-feedback", ssa), nil)}},
		"invalid-path": {{workSpec(deployment("invalid-path", nil), configured("invalid-path", ssa, path("ok", ".spec.replicas"), path("invalid", ".spec["), path("after", ".spec.replicas")), nil)}},
		"well-known":   {{wellKnownStatus(workSpec(deployment("well-known", nil), configured("well-known", ssa, paths[0]), nil))}},
		"withdrawn": {{
			workSpec(deployment("withdrawn", paused), configured("withdrawn", ssa, paths[1]), nil),
			workSpec(deployment("withdrawn", nil), configured("withdrawn", ssa, paths[1]), nil),
		}},
		"leftover": { // of an earlier work, by the same field manager
			{workSpec(deployment("leftover", paused), configured("leftover", ssa), orphan)},
			{workSpec(deployment("leftover", map[string]any{"minReadySeconds": int64(7)}), configured("leftover", ssa, paths[0], paths[1]), nil)},
		},
		"created-once": {
			{
				workSpec(deployment("created-once", paused), configured("created-once", createOnly, paths[1]), nil),
				workSpec(deployment("created-once", map[string]any{"paused": false}), configured("created-once", createOnly, paths[1]), nil),
			},
		},
		"read": {
			{workSpec(deployment("read", paused), configured("read", ssa), orphan)},
			{workSpec(deployment("read", nil), configured("read", readOnly, paths[1]), nil)},
		},
		"read-later": {{
			workSpec(deployment("read-later", paused), configured("read-later", ssa), nil),
			workSpec(deployment("read-later", nil), configured("read-later", readOnly, paths[1]), orphan),
		}},
		"read-missing": {{workSpec(deployment("read-missing", nil), configured("read-missing", readOnly, paths[1]), nil)}},
		"selected":     {{workSpec(deployment("selected", nil), configured("selected", ssa), selective)}},
		"deleted":      {{workSpec(deployment("deleted", nil), configured("deleted", ssa), nil)}},
		"orphaned-late": {{
			workSpec(deployment("orphaned-late", nil), configured("orphaned-late", ssa), nil),
			workSpec(deployment("orphaned-late", nil), configured("orphaned-late", ssa), orphan),
		}},
		"removed-manifest": {{
			workSpec(deployment("removed-manifest", nil), configured("removed-manifest", ssa), nil),
			workSpec(deployment("other", nil), configured("other", ssa), nil),
		}},
	}
}

// agentView is what an agent reports about a work, and what it has made of its object.
type agentView struct {
	Work, Manifests []string
	Object          string
}

// viewOf returns the conditions and values of a status without times and messages.
func viewOf(status *workv1.ManifestWorkStatus, object *unstructured.Unstructured) agentView {
	var view agentView
	add := func(lines []string, conditions []metav1.Condition) []string {
		var added []string
		for _, c := range conditions {
			added = append(added, fmt.Sprintf("%s=%s %s %d", c.Type, c.Status, c.Reason, c.ObservedGeneration))
		}
		slices.Sort(added)
		return append(lines, added...)
	}
	view.Work = add(nil, status.Conditions)
	for _, manifest := range status.ResourceStatus.Manifests {
		view.Manifests = append(view.Manifests, fmt.Sprintf("%+v", manifest.ResourceMeta))
		view.Manifests = add(view.Manifests, manifest.Conditions)
		for _, value := range manifest.StatusFeedbacks.Values {
			encoded, _ := json.Marshal(value.Value) // a struct of plain values
			view.Manifests = append(view.Manifests, value.Name+" "+string(encoded))
		}
	}
	view.Object = objectView(object)
	return view
}

// objectView returns the fields of the spec that the works set.
func objectView(object *unstructured.Unstructured) string {
	if object == nil {
		return "missing"
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	paused, _ := spec["paused"].(bool)
	seconds, _ := spec["minReadySeconds"].(int64)
	return fmt.Sprintf("replicas %v, paused %t, %d seconds", spec["replicas"], paused, seconds)
}

// TestAgent_as_simulated gives the real work agent and the simulated one the same works, and compares what they
// report and what is left of the objects.
func TestAgent_as_simulated(t *testing.T) { //nolint:paralleltest,tparallel // two control planes take most of the machine
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f := startFleet(ctx, t, ocm.Spec{Real: true, Clusters: 1, Interval: time.Second})
	for name, works := range agentCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			simulated := spoke.New(ocm.ClusterName(1), ocm.Installed, time.Now())
			simulated.RawJSON = true // the gate of the first real cluster
			for i, specs := range works {
				compareAgents(t, f, simulated, name, fmt.Sprintf("%s-%d", name, i), specs)
			}
		})
	}
}

// compareAgents gives a work to both agents, changes it, and deletes it.
func compareAgents(t *testing.T, f *ocm.Fleet, simulated *spoke.Cluster, object, name string, specs []workv1.ManifestWorkSpec) {
	t.Helper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: simulated.Name, Name: name}}
	ofSimulated := func() *unstructured.Unstructured {
		return simulated.Object(deployments.Group, deployments.Kind, "default", object)
	}
	ofReal := func(ctx context.Context) *unstructured.Unstructured {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(deployments)
		err := f.Spokes[0].Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: object}, found)
		if apierrors.IsNotFound(err) {
			return nil
		}
		must(t, err)
		return found
	}
	report := workv1.ManifestWorkStatus{} // of the simulated agent
	for i, spec := range specs {
		if i == 0 {
			work.Spec = spec
			must(t, f.Client.Create(t.Context(), work))
		} else {
			before := work.DeepCopy()
			work.Spec = spec
			must(t, f.Client.Patch(t.Context(), work, client.MergeFrom(before)))
		}
		known := work.DeepCopy()
		known.Status = report
		report = simulated.Apply(known, time.Now())
		want := viewOf(&report, ofSimulated())
		var got agentView
		if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, settle, true, func(ctx context.Context) (bool, error) {
			must(t, f.Client.Get(ctx, client.ObjectKeyFromObject(work), work))
			got = viewOf(&work.Status, ofReal(ctx))
			return cmp.Equal(want, got), nil
		}); err != nil {
			t.Errorf("work %s, spec %d (-simulated +real):\n%s", name, i, cmp.Diff(want, got))
		}
	}
	must(t, f.Client.Delete(t.Context(), work))
	simulated.Delete(work)
	want, got := objectView(ofSimulated()), ""
	if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, settle, true, func(ctx context.Context) (bool, error) {
		got = objectView(ofReal(ctx))
		return apierrors.IsNotFound(f.Client.Get(ctx, client.ObjectKeyFromObject(work), &workv1.ManifestWork{})) && got == want, nil
	}); err != nil {
		t.Errorf("work %s is deleted, %v: its object is %q, simulated %q", name, err, got, want)
	}
}
