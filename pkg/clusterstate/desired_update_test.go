// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// definitionOf returns the CustomResourceDefinition of ClusterVersions for a feature set.
func definitionOf(t *testing.T, featureSet string) *simulation.Definition {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	name := "0000_00_cluster-version-operator_01_clusterversions-" + featureSet + ".crd.yaml"
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config", "v1", "zz_generated.crd-manifests", name))
	if err != nil {
		t.Fatal(err)
	}
	all, err := simulation.Definitions(fstest.MapFS{name: {Data: data}})
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	return all[0]
}

// The fields mode and acceptRisks exist only behind feature gates. If the gates are off, the API server drops
// the fields from objects and merge patches.
func TestDesiredUpdate_by_feature_set(t *testing.T) {
	t.Parallel()
	const risk = "SlowBoot"
	leftover := &configv1.Update{
		Version: "4.4.5", Image: image445, Force: true, Mode: configv1.UpdateModePreflight, AcceptRisks: []configv1.AcceptRisk{{Name: risk}},
	}
	request := map[string]any{"version": "4.4.6", "image": "", "force": false, "architecture": ""}
	current := map[string]any{"version": "4.4.5", "image": image445, "force": false, "architecture": ""}
	with := func(update map[string]any, risks ...string) map[string]any {
		accepted := make([]any, 0, len(risks))
		for _, name := range risks {
			accepted = append(accepted, map[string]any{"name": name})
		}
		extended := map[string]any{"acceptRisks": accepted}
		maps.Copy(extended, update)
		return extended
	}
	for featureSet, want := range map[string]struct{ requested, accepting, withdrawn map[string]any }{
		"Default":              {request, request, nil},
		"TechPreviewNoUpgrade": {with(request, risk), with(request, risk, "OldEtcd"), with(current, risk)},
	} {
		t.Run(featureSet, func(t *testing.T) {
			t.Parallel()
			definition := definitionOf(t, featureSet)
			stored := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
			stored.Spec.ClusterID, stored.Spec.DesiredUpdate = "11111111-2222-3333-4444-555555555555", leftover.DeepCopy()
			if err := definition.Admit(nil, stored); err != nil {
				t.Fatal(err)
			}
			stored.Status.History = []configv1.UpdateHistory{entry("4.4.5", image445, configv1.CompletedUpdate)}
			release := clusterstate.Release{Version: "4.4.6"}
			for name, tc := range map[string]struct {
				patch func(*configv1.ClusterVersion) client.Patch
				want  map[string]any
			}{
				"requested": {func(v *configv1.ClusterVersion) client.Patch { return clusterstate.RequestPatch(v, release) }, want.requested},
				"accepting": {func(v *configv1.ClusterVersion) client.Patch { return clusterstate.RequestPatch(v, release, "OldEtcd") }, want.accepting},
				"withdrawn": {func(v *configv1.ClusterVersion) client.Patch { return clusterstate.WithdrawalPatch(v) }, want.withdrawn},
			} {
				got := desiredUpdateAfter(t, definition, stored.DeepCopy(), tc.patch)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			applied := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"clusterID": "11111111-2222-3333-4444-555555555555", "desiredUpdate": clusterstate.DesiredUpdate(release),
			}}}
			if err := definition.Admit(nil, applied); err != nil {
				t.Errorf("the request is not valid: %v", err)
			}
			if kept, _, _ := unstructured.NestedMap(applied.Object, "spec", "desiredUpdate"); !cmp.Equal(kept, clusterstate.DesiredUpdate(release)) {
				t.Errorf("a field of the request is not declared: %v is left", kept)
			}
		})
	}
}

// desiredUpdateAfter returns spec.desiredUpdate as an API server stores it after a patch.
func desiredUpdateAfter(t *testing.T, definition *simulation.Definition, version *configv1.ClusterVersion, patch func(*configv1.ClusterVersion) client.Patch) map[string]any {
	t.Helper()
	c := simulation.NewFakeClient(t, version)
	if err := c.Get(t.Context(), clusterstate.VersionKey, version); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), version.DeepCopy(), patch(version)); err != nil {
		t.Fatal(err)
	}
	patched := &configv1.ClusterVersion{}
	if err := c.Get(t.Context(), clusterstate.VersionKey, patched); err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(patched)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status") // a subresource
	object := &unstructured.Unstructured{Object: content}
	if err := definition.Admit(nil, object); err != nil {
		t.Fatal(err)
	}
	desired, _, err := unstructured.NestedMap(object.Object, "spec", "desiredUpdate")
	if err != nil {
		t.Fatal(err)
	}
	return desired
}
