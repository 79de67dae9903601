// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// csv returns a ClusterServiceVersion in the form sent by the API server.
func csv(namespace, name, properties string, status map[string]any) unstructured.Unstructured {
	object := unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": namespace, "name": name, "annotations": map[string]any{"olm.properties": properties}},
	}}
	if status != nil {
		object.Object["status"] = status
	}
	return object
}

// resolved returns a ClusterServiceVersion with properties in the form written by the Operator Lifecycle
// Manager.
func resolved(namespace, name, properties string) unstructured.Unstructured {
	object := csv(namespace, name, "", nil)
	object.SetAnnotations(map[string]string{"operatorframework.io/properties": properties})
	return object
}

func TestListClusterServiceVersions(t *testing.T) {
	t.Parallel()
	pages := map[string][]unstructured.Unstructured{
		"": {
			csv("b", "last", `[{"type":"olm.maxOpenShiftVersion","value":"4.14"}]`, map[string]any{"phase": "Succeeded"}),
			csv("a", "number", `[{"type":"x","value":{}},{"type":"olm.maxOpenShiftVersion","value":4.15}]`, map[string]any{"phase": "Failed", "reason": "No\nroom"}),
		},
		"more": {
			resolved("a", "resolved", `{"properties":[{"type":"olm.gvk","value":{"group":"a.io","kind":"A","version":"v1"}},{"type":"olm.maxOpenShiftVersion","value":"4.16"}]}`),
			resolved("a", "unreadable", `[`), csv("a", "bad", `{`, nil), csv("a", "plain", "", map[string]any{"phase": 7}),
		},
	}
	cluster := interceptor.NewClient(simulation.NewFakeClient(t), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			var options client.ListOptions
			options.ApplyOptions(opts)
			page, ok := list.(*unstructured.UnstructuredList)
			if !ok || options.Limit == 0 || options.LabelSelector == nil || options.LabelSelector.String() != "!olm.copiedFrom" {
				return errors.New("not a page of the originals")
			}
			page.Items = pages[options.Continue]
			if options.Continue == "" {
				page.SetContinue("more")
			}
			return nil
		},
	})
	got, err := clusterstate.ListClusterServiceVersions(t.Context(), cluster)
	want := []clusterstate.ClusterServiceVersion{
		{Namespace: "a", Name: "bad", MaxVersion: "malformed"},
		{Namespace: "a", Name: "number", Phase: "Failed", Reason: "No room", MaxVersion: "4.15"},
		{Namespace: "a", Name: "plain"},
		{Namespace: "a", Name: "resolved", MaxVersion: "4.16"},
		{Namespace: "a", Name: "unreadable", MaxVersion: "malformed"},
		{Namespace: "b", Name: "last", Phase: "Succeeded", MaxVersion: "4.14"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
