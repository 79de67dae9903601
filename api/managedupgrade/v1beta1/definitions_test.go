// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"slices"
	"strings"
	"testing"
	_ "time/tzdata" // the API server knows all zones, whatever the machine of the test does

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// crds returns the definitions by kind.
func crds(tb testing.TB) map[string]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range crdtest.Definitions(tb, definitionsFolder) {
		if crd.Spec.Group == "managedupgrade.appuio.io" {
			all[crd.Spec.Names.Kind] = crd
		}
	}
	if len(all) != len(samples) {
		tb.Fatalf("%d definitions, want %d", len(all), len(samples))
	}
	return all
}

func TestSpec(t *testing.T) {
	t.Parallel()
	all := crdtest.Validators(t, definitionsFolder, maintenancev1beta1.GroupVersion.Group)
	for kind, table := range cases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range table {
				if slices.ContainsFunc(tc.want, func(want string) bool { return strings.HasPrefix(want, crdtest.StrictError) }) {
					continue // only an API server reports unknown fields
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					object := sample(t, samples[kind])
					for _, e := range tc.edits {
						e.apply(t, object.Object)
					}
					crdtest.CompareAdmission(t, tc.want, all[kind].Admit(nil, object))
				})
			}
		})
	}
}

// Each rule of a spec has a case that violates it.
func TestEachRuleHasACase(t *testing.T) {
	t.Parallel()
	tables := cases()
	for kind, crd := range crds(t) {
		var messages []string
		for _, tc := range tables[kind] {
			for _, want := range tc.want {
				_, message, _ := strings.Cut(want, ": ")
				messages = append(messages, strings.TrimPrefix(message, "evaluating rule: "))
			}
		}
		messages = append(messages, unchangeable) // TestJobCannotChange
		for at, message := range crdtest.Rules(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			if !slices.Contains(messages, message) {
				path, _, _ := strings.Cut(at, " ")
				t.Errorf("%s%s: no case is rejected because %q", kind, path, message)
			}
		}
	}
}

func TestDefinitionsFitClientSideApply(t *testing.T) {
	t.Parallel()
	crdtest.CheckClientSideApply(t, definitionsFolder)
}

func TestStatusesFitIntoEtcd(t *testing.T) {
	t.Parallel()
	crdtest.CheckStatusSize(t, definitionsFolder, "ClusterVersion.managedupgrade.appuio.io", "UpgradeJob.managedupgrade.appuio.io", "UpgradeConfig.upgrade.managed.openshift.io") // previews of overlays have a limit, and the lifecycle drops earlier attempts
}

func TestDefinitionsNames(t *testing.T) {
	t.Parallel()
	got := map[string][]string{}
	for kind, crd := range crds(t) {
		names := crd.Spec.Names
		got[kind] = append(append([]string{names.Plural, names.Singular, names.ListKind}, names.ShortNames...), names.Categories...)
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || crd.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has scope %s and subresources %v, want a namespace and a status", kind, crd.Spec.Scope, crd.Spec.Versions[0].Subresources)
		}
	}
	want := map[string][]string{
		"ClusterVersion":          {"clusterversions", "clusterversion", "ClusterVersionList", "mcv", "maintenance"},
		"UpgradeConfig":           {"upgradeconfigs", "upgradeconfig", "UpgradeConfigList", "uc", "maintenance"},
		"UpgradeJob":              {"upgradejobs", "upgradejob", "UpgradeJobList", "uj", "maintenance"},
		"UpgradeJobHook":          {"upgradejobhooks", "upgradejobhook", "UpgradeJobHookList", "ujh", "maintenance"},
		"UpgradeSuspensionWindow": {"upgradesuspensionwindows", "upgradesuspensionwindow", "UpgradeSuspensionWindowList", "usw", "maintenance"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestKustomizationIncludesEachDefinition(t *testing.T) {
	t.Parallel()
	crdtest.CheckKustomization(t, definitionsFolder)
}
