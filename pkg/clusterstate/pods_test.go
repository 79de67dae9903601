// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// pages returns a client that lists pods in the given pages.
func pages(t *testing.T, all ...[]metav1.PartialObjectMetadata) client.Reader {
	t.Helper()
	return interceptor.NewClient(simulation.NewFakeClient(t), interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		var options client.ListOptions
		options.ApplyOptions(opts)
		page, ok := list.(*metav1.PartialObjectMetadataList)
		if !ok || page.Kind != "PodList" || options.FieldSelector.String() != "spec.nodeName=worker-0" || options.Limit == 0 || options.Namespace != "" {
			return fmt.Errorf("unexpected list of %T (%+v)", list, options)
		}
		at := 0
		if options.Continue != "" {
			if _, err := fmt.Sscanf(options.Continue, "page-%d", &at); err != nil {
				return err
			}
		}
		page.Items = all[at]
		if at+1 < len(all) {
			page.Continue = fmt.Sprintf("page-%d", at+1)
		}
		return nil
	}})
}

func TestListPodsOnNode_reads_pages(t *testing.T) {
	t.Parallel()
	named := func(namespace, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	pods, err := clusterstate.ListPodsOnNode(t.Context(), pages(t,
		[]metav1.PartialObjectMetadata{named("b", "1"), named("a", "2")},
		[]metav1.PartialObjectMetadata{named("a", "1")},
		[]metav1.PartialObjectMetadata{},
		[]metav1.PartialObjectMetadata{named("c", "0")},
	), "worker-0")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pod := range pods {
		got = append(got, pod.Namespace+"/"+pod.Name)
	}
	if diff := cmp.Diff([]string{"a/1", "a/2", "b/1", "c/0"}, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestListPodsOnNode_returns_errors(t *testing.T) {
	t.Parallel()
	unreadable := simulation.WithReadErrors(simulation.NewFakeClient(t), errors.New("no"), func(any) bool { return true })
	if _, err := clusterstate.ListPodsOnNode(t.Context(), unreadable, "worker-0"); err == nil || err.Error() != "listing the pods on node worker-0: no" {
		t.Errorf("got %v", err)
	}
	if _, err := clusterstate.ListPDBs(t.Context(), unreadable, "shop"); err == nil || err.Error() != "listing the PodDisruptionBudgets in namespace shop: no" {
		t.Errorf("got %v", err)
	}
	if _, err := clusterstate.ListPDBsIn(t.Context(), unreadable, nil); err == nil || err.Error() != "listing the PodDisruptionBudgets: no" {
		t.Errorf("got %v", err)
	}
}

func TestPod_facts(t *testing.T) {
	t.Parallel()
	gone := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC))
	owned := func(by ...metav1.OwnerReference) metav1.ObjectMeta { return metav1.ObjectMeta{OwnerReferences: by} }
	cases := map[string]struct {
		pod  metav1.ObjectMeta
		want clusterstate.Pod
	}{
		"pod without an owner": {metav1.ObjectMeta{}, clusterstate.Pod{}},
		"pod of a ReplicaSet": {
			owned(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Controller: new(true)}), clusterstate.Pod{},
		},
		"pod of a DaemonSet": {
			owned(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}), clusterstate.Pod{IgnoredByDrain: true},
		},
		"pod with a DaemonSet as an owner that is not its controller": {
			owned(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet"}), clusterstate.Pod{},
		},
		"pod of the node": {owned(metav1.OwnerReference{APIVersion: "v1", Kind: "Node"}), clusterstate.Pod{IgnoredByDrain: true}},
		"pod of another API's Node": {
			owned(metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Node"}), clusterstate.Pod{},
		},
		"a mirror pod": {
			metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.mirror": ""}}, clusterstate.Pod{IgnoredByDrain: true},
		},
		"a pod whose annotation claims that it is static": {
			metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "file"}}, clusterstate.Pod{},
		},
		"pod whose annotation names the API server": {
			metav1.ObjectMeta{Annotations: map[string]string{"kubernetes.io/config.source": "api"}}, clusterstate.Pod{},
		},
		"terminating pod": {
			metav1.ObjectMeta{DeletionTimestamp: &gone, DeletionGracePeriodSeconds: new(int64(30))}, clusterstate.Pod{TerminationDeadline: gone.Time},
		},
		"finished pod kept by finalizers": {
			metav1.ObjectMeta{DeletionTimestamp: &gone, DeletionGracePeriodSeconds: new(int64(0)), Finalizers: []string{"example.com/keep"}},
			clusterstate.Pod{TerminationDeadline: gone.Time, KeptByFinalizers: true, Finalizers: []string{"example.com/keep"}},
		},
		"terminating pod without a grace period": {
			metav1.ObjectMeta{DeletionTimestamp: &gone}, clusterstate.Pod{TerminationDeadline: gone.Time},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.pod.Namespace, tc.pod.Name, tc.pod.UID = "shop", "shop-1", "u"
			tc.want.Namespace, tc.want.Name, tc.want.UID = "shop", "shop-1", types.UID("u")
			got, err := clusterstate.ListPodsOnNode(t.Context(), pages(t, []metav1.PartialObjectMetadata{{ObjectMeta: tc.pod}}), "worker-0")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]clusterstate.Pod{tc.want}, got); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPDB_selects_pods(t *testing.T) {
	t.Parallel()
	in := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: operator, Values: values}}}
	}
	pod := clusterstate.Pod{Namespace: "shop", Labels: labels.Set{"app": "shop", "tier": "web"}}
	cases := map[string]struct {
		selector  *metav1.LabelSelector
		namespace string
		guards    bool
		wrong     string
	}{
		"one of the labels":                            {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, guards: true},
		"all of the labels":                            {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop", "tier": "web"}}, guards: true},
		"one label that matches and one that does not": {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop", "tier": "data"}}},
		"labels in another namespace":                  {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, namespace: "other"},
		"expression that matches":                      {selector: in(metav1.LabelSelectorOpIn, "web", "data"), guards: true},
		"expression that does not match":               {selector: in(metav1.LabelSelectorOpNotIn, "web")},
		"expression on an existing label":              {selector: in(metav1.LabelSelectorOpExists), guards: true},
		"expression on a missing label":                {selector: in(metav1.LabelSelectorOpDoesNotExist)},
		"expression that matches and a missing label": {selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"app": "bank"}, MatchExpressions: in(metav1.LabelSelectorOpIn, "web").MatchExpressions,
		}},
		"an empty selector":                   {selector: &metav1.LabelSelector{}, guards: true},
		"empty selector in another namespace": {selector: &metav1.LabelSelector{}, namespace: "other"},
		"no selector":                         {},
		"unknown selector operator": {
			selector: in("Near", "web"), wrong: "\"Near\" is not a valid label selector operator",
		},
		"invalid label value": {
			selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": strings.Repeat("x", 1<<20)}}, wrong: "Invalid value",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.namespace == "" {
				tc.namespace = pod.Namespace
			}
			budget := &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "budget"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: tc.selector},
			}
			beside := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "beside", Name: "budget"}}
			budgets, err := clusterstate.ListPDBs(t.Context(), simulation.NewFakeClient(t, budget, beside), tc.namespace)
			if err != nil || len(budgets) != 1 {
				t.Fatalf("got %v, %v", budgets, err)
			}
			got := budgets[0]
			if got.Selects(pod) != tc.guards {
				t.Errorf("guards it: got %t", got.Selects(pod))
			}
			if (tc.wrong == "") != (got.SelectorError == "") || !strings.Contains(got.SelectorError, tc.wrong) || len(got.SelectorError) > 600 {
				t.Errorf("selector error %q, want %q", got.SelectorError, tc.wrong)
			}
		})
	}
}
