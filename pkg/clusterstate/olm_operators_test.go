// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func olmObject(kind, name string, spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": name},
		"spec": spec, "status": status,
	}}
}

func olmConditions(pairs ...string) []any {
	var all []any
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, map[string]any{"type": pairs[i], "status": pairs[i+1], "reason": "R", "message": "m"})
	}
	return all
}

func inShop(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// Neither the spec of a Subscription nor its state alone proves that the operator is at its newest release.
func TestListSubscriptions(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t,
		olmObject("Subscription", "b", map[string]any{"installPlanApproval": "Manual", "source": "redhat", "sourceNamespace": "market"}, map[string]any{
			"state": "AtLatestKnown", "currentCSV": "b.v2", "installedCSV": "b.v2", "installPlanRef": map[string]any{"name": "install-1"},
			"lastUpdated": "2026-11-22T12:00:00Z", "conditions": olmConditions("Other", "True", "CatalogSourcesUnhealthy", "Unknown", "ResolutionFailed", "False"),
		}),
		olmObject("Subscription", "a", map[string]any{"installPlanApproval": "Automatic"}, map[string]any{
			"state": "AtLatestKnown", "currentCSV": "a.v2", "installedCSV": "a.v1", "installPlanRef": map[string]any{"namespace": "other", "name": "install-2"}, "lastUpdated": "soon",
		}),
		olmObject("Subscription", "c", map[string]any{}, map[string]any{"state": "AtLatestKnown"}),
		olmObject("Subscription", "d", map[string]any{}, map[string]any{"state": "UpgradePending", "currentCSV": "d.v1", "installedCSV": "d.v1"}))
	got, err := clusterstate.ListSubscriptions(t.Context(), r)
	want := []clusterstate.Subscription{
		{NamespacedName: inShop("a"), CurrentCSV: "a.v2", InstalledCSV: "a.v1", Plan: types.NamespacedName{Namespace: "other", Name: "install-2"}},
		{
			NamespacedName: inShop("b"), Manual: true, Catalog: types.NamespacedName{Namespace: "market", Name: "redhat"}, CurrentCSV: "b.v2", InstalledCSV: "b.v2",
			Plan: inShop("install-1"), AtLatest: true, Problem: "; CatalogSourcesUnhealthy: m", LastUpdated: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		},
		{NamespacedName: inShop("c"), Plan: inShop("")},
		{NamespacedName: inShop("d"), CurrentCSV: "d.v1", InstalledCSV: "d.v1", Plan: inShop("")},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestGetInstallPlan(t *testing.T) {
	t.Parallel()
	r := simulation.NewFakeClient(t,
		olmObject("InstallPlan", "failed", map[string]any{"approval": "Manual", "approved": true, "clusterServiceVersionNames": []any{"a.v2"}}, map[string]any{
			"phase": "Failed", "message": "no", "conditions": olmConditions("Installed", "False"), "bundleLookups": []any{map[string]any{"replaces": "a.v1"}},
		}),
		olmObject("InstallPlan", "complete", map[string]any{"approval": "Automatic"}, map[string]any{"phase": "Complete", "message": "done", "conditions": olmConditions("Installed", "True")}),
		olmObject("ClusterServiceVersion", "a.v2", nil, map[string]any{"phase": "Failed", "reason": "R", "message": "m"}),
		olmObject("CatalogSource", "redhat", nil, map[string]any{"connectionState": map[string]any{"lastConnect": "2026-11-22T12:00:00Z"}}))
	failed, err := clusterstate.GetInstallPlan(t.Context(), r, inShop("failed"))
	if err != nil || !failed.Failed() || failed.Complete() || !failed.Manual || !failed.Approved || failed.Problem != "R: m" {
		t.Errorf("got %+v, %v", failed, err)
	}
	complete, err := clusterstate.GetInstallPlan(t.Context(), r, inShop("complete"))
	if err != nil || complete.Failed() || !complete.Complete() || complete.Manual || complete.Approved || complete.Problem != "done" {
		t.Errorf("got %+v, %v", complete, err)
	}
	for name, tc := range map[string]struct {
		s    clusterstate.Subscription
		want bool
	}{
		"by its reference":          {clusterstate.Subscription{NamespacedName: inShop("x"), Plan: inShop("failed")}, true},
		"by the release":            {clusterstate.Subscription{NamespacedName: inShop("x"), CurrentCSV: "a.v2"}, true},
		"by the replaced release":   {clusterstate.Subscription{NamespacedName: inShop("x"), InstalledCSV: "a.v1"}, true},
		"by nothing":                {clusterstate.Subscription{NamespacedName: inShop("x"), InstalledCSV: "a.v0", CurrentCSV: "a.v3"}, false},
		"nothing is installed":      {clusterstate.Subscription{NamespacedName: inShop("x")}, false},
		"one of another namespaces": {clusterstate.Subscription{NamespacedName: types.NamespacedName{Namespace: "other", Name: "x"}, CurrentCSV: "a.v2"}, false},
	} {
		if got := failed.Upgrades(&tc.s); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	csv, err := clusterstate.GetClusterServiceVersion(t.Context(), r, inShop("a.v2"))
	if err != nil || !csv.Failed() || csv.Succeeded() || csv.Reason != "R" || csv.Message != "m" {
		t.Errorf("got %+v, %v", csv, err)
	}
	if at, err := clusterstate.CatalogConnected(t.Context(), r, inShop("redhat")); err != nil || at.IsZero() {
		t.Errorf("got %s, %v", at, err)
	}
	none, errPlan := clusterstate.GetInstallPlan(t.Context(), r, inShop("none"))
	noCSV, errCSV := clusterstate.GetClusterServiceVersion(t.Context(), r, inShop("none"))
	never, errCatalog := clusterstate.CatalogConnected(t.Context(), r, inShop("none"))
	if none != nil || errPlan != nil || noCSV != nil || errCSV != nil || !never.IsZero() || errCatalog != nil {
		t.Errorf("of what does not exist: %v %v, %v %v, %s %v", none, errPlan, noCSV, errCSV, never, errCatalog)
	}
}
