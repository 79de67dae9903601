// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestWhichBudgetsBlock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status           policyv1.PodDisruptionBudgetStatus
		policy           policyv1.UnhealthyPodEvictionPolicyType
		blocks, observed bool
	}{
		"one that lets a pod go":     {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 3, DisruptionsAllowed: 1}, observed: true},
		"one that lets no pod go":    {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 2}, blocks: true, observed: true},
		"one without pods":           {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2}, observed: true},
		"one that nobody looked at":  {},
		"one that is not up to date": {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3}, blocks: true},
		"one that lets unhealthy pods go, and none is healthy": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3}, policy: policyv1.AlwaysAllow, observed: true,
		},
		"one that lets unhealthy pods go, and one is healthy": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 1}, policy: policyv1.AlwaysAllow, blocks: true, observed: true,
		},
		"one that lets unhealthy pods go as the others allow": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3}, policy: policyv1.IfHealthyBudget, blocks: true, observed: true,
		},
		"one that counts nonsense": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: -1, CurrentHealthy: -1, DisruptionsAllowed: -1}, observed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: tc.status}
			if tc.policy != "" {
				budget.Spec.UnhealthyPodEvictionPolicy = &tc.policy
			}
			if got := clusterstate.PDBOf(budget); got.BlocksEviction != tc.blocks || got.Observed != tc.observed {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestBudgetsAreReadOfOneNamespaceOrOfSome(t *testing.T) {
	t.Parallel()
	budget := func(namespace, name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	r := backwards(t, budget("b", "1"), budget("a", "2"), budget("a", "1"), budget("c", "1"))
	for name, tc := range map[string]struct {
		read func() ([]clusterstate.PDB, error)
		want []string
	}{
		"of one":  {func() ([]clusterstate.PDB, error) { return clusterstate.ListPDBs(t.Context(), r, "a") }, []string{"a/1", "a/2"}},
		"of none": {func() ([]clusterstate.PDB, error) { return clusterstate.ListPDBs(t.Context(), r, "d") }, nil},
		"of some": {func() ([]clusterstate.PDB, error) {
			return clusterstate.ListPDBsIn(t.Context(), r, []string{"b*", "a"})
		}, []string{"a/1", "a/2", "b/1"}},
	} {
		budgets, err := tc.read()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, budget := range budgets {
			got = append(got, budget.Namespace+"/"+budget.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
