// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	_ "time/tzdata" // the API server knows all zones, whatever the machine of the test does

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// crds returns the definitions of a folder by kind.
func crds(tb testing.TB, folder string) map[string]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crdtest.Definitions(tb, folder) {
		all[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = crd
	}
	return all
}

// definitions returns the definitions of this package by kind.
func definitions(tb testing.TB) map[string]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crds(tb, definitionsFolder) {
		all[crd.Spec.Names.Kind] = crd
	}
	if len(all) != len(samples) {
		tb.Fatalf("%d definitions, want %d", len(all), len(samples))
	}
	return all
}

// strict reports whether only an API server rejects a case: the test kit prunes unknown fields, and
// does not validate embedded objects.
func strict(want []string) bool {
	return slices.ContainsFunc(want, func(want string) bool {
		return strings.HasPrefix(want, crdtest.StrictError) || strings.Contains(want, "kind: Required value")
	})
}

func TestSpec(t *testing.T) {
	t.Parallel()
	all := crdtest.Validators(t, definitionsFolder, "")
	for kind, table := range cases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range table {
				if strict(tc.want) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					crdtest.CompareAdmission(t, tc.want, all[kind].Admit(nil, edited(t, kind, tc.edits...)))
				})
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	t.Parallel()
	all := crdtest.Validators(t, definitionsFolder, "")
	for name, tc := range transitions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := edited(t, tc.kind, tc.before...)
			if tc.status != nil {
				old.Object["status"] = tc.status
			}
			if err := all[tc.kind].Admit(nil, old); err != nil {
				t.Fatal(err)
			}
			changed := old.DeepCopy()
			for _, e := range tc.edits {
				e.apply(t, changed.Object)
			}
			crdtest.CompareRejections(t, tc.want, all[tc.kind].Admit(old, changed))
		})
	}
}

// Each rule has a case that violates it, except the rules of Open Cluster Management and of the schedule, which are
// compared below.
func TestEachRuleHasACase(t *testing.T) {
	t.Parallel()
	var messages []string
	for _, table := range cases() {
		for _, tc := range table {
			messages = append(messages, tc.want...)
		}
	}
	for _, tc := range transitions() {
		messages = append(messages, tc.want...)
	}
	for kind, crd := range definitions(t) {
		for at, message := range crdtest.Rules(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			path, _, _ := strings.Cut(at, " ")
			if strings.Contains(path, ".windows.") && !strings.HasSuffix(path, ".duration") || strings.Contains(path, ".manifestWork.") {
				continue
			}
			if !slices.ContainsFunc(messages, func(m string) bool { return strings.HasSuffix(m, ": "+message) }) {
				t.Errorf("%s%s: no case is rejected because %q", kind, path, message)
			}
		}
	}
}

// Windows are written as the schedules of the UpgradeConfig of scheduled maintenance are, whose tests
// have cases for each rule.
func TestWindowsFollowTheRulesOfSchedules(t *testing.T) {
	t.Parallel()
	property := func(schema apiextensionsv1.JSONSchemaProps, path ...string) apiextensionsv1.JSONSchemaProps {
		for _, name := range path {
			schema = schema.Properties[name]
		}
		return schema
	}
	maintenance := crds(t, "../../../deploy/crds")["managedupgrade.appuio.io/UpgradeConfig"]
	schedule := property(*maintenance.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", "schedule")
	windows := property(*definitions(t)["ManagedClustersUpgrade"].Spec.Versions[0].Schema.OpenAPIV3Schema, "spec", "upgradeStrategy", "windows")
	for _, field := range []string{"cron", "isoWeek", "location"} {
		want, got := crdtest.Rules(t, schedule.Properties[field]), crdtest.Rules(t, windows.Items.Schema.Properties[field])
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("the rules of %s differ from those of an UpgradeConfig (-UpgradeConfig +window), or there are none:\n%s", field, diff)
		}
	}
}

func TestDefinitionsFitClientSideApply(t *testing.T) {
	t.Parallel()
	crdtest.CheckClientSideApply(t, definitionsFolder)
}

func TestStatusesFitIntoEtcd(t *testing.T) {
	t.Parallel()
	crdtest.CheckStatusSize(t, definitionsFolder, "ClusterUpgradeRun.upgrade.managed.openshift.io") // the lifecycle drops earlier attempts
}

func TestDefinitionsNames(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for kind, crd := range definitions(t) {
		names := crd.Spec.Names
		got[kind] = append(append([]string{crd.Spec.Group, names.Plural, names.Singular, names.ListKind}, names.ShortNames...), names.Categories...)
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || crd.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has scope %s and subresources %v, want a namespace and a status", kind, crd.Spec.Scope, crd.Spec.Versions[0].Subresources)
		}
	}
	want := map[string][]string{
		"ManagedClustersUpgrade": {"cluster.open-cluster-management.io", "managedclustersupgrades", "managedclustersupgrade", "ManagedClustersUpgradeList", "mcu", "fleet"},
		"ClusterUpgradeRun":      {"upgrade.managed.openshift.io", "clusterupgraderuns", "clusterupgraderun", "ClusterUpgradeRunList", "cur", "fleet"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// The definitions of fleets are installed on hubs only.
func TestKustomizationsIncludeTheDefinitionsOfHubsOnly(t *testing.T) {
	t.Parallel()
	crdtest.CheckKustomization(t, definitionsFolder)
	for name := range crds(t, "../../../deploy/crds") {
		if strings.HasSuffix(name, "/ManagedClustersUpgrade") || strings.HasSuffix(name, "/ClusterUpgradeRun") {
			t.Errorf("%s is among the definitions of the operator", name)
		}
	}
}

func TestKustomizationOfTheHubIncludesEachManifest(t *testing.T) {
	t.Parallel()
	folder := filepath.Dir(definitionsFolder)
	data, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" {
			want = append(want, entry.Name())
		}
	}
	slices.Sort(kustomization.Resources)
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// The sample is printed in the proposal, the status with its misspelled names included: its objects decode without
// loss.
func TestSampleDecodesWithoutLoss(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(samplesFolder, samples["ManagedClustersUpgrade"]))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	decoded, _, err := crdtest.StrictDecoder(t, fleetv1beta1.AddToScheme).Decode(printed, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for from, to := range map[*any][]byte{&want: printed, &got: encoded} {
		if err := json.NewDecoder(bytes.NewReader(to)).Decode(from); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(crdtest.WithoutEmpty(want), crdtest.WithoutEmpty(got)); diff != "" {
		t.Errorf("printed and decoded (-want +got):\n%s", diff)
	}
}
