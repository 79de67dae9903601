// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestPDB_that_blocks_eviction(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status           policyv1.PodDisruptionBudgetStatus
		policy           policyv1.UnhealthyPodEvictionPolicyType
		blocks, observed bool
	}{
		"PDB that allows a disruption":  {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 3, DisruptionsAllowed: 1}, observed: true},
		"PDB that allows no disruption": {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 2}, blocks: true, observed: true},
		"PDB without pods":              {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2}, observed: true},
		"PDB without a status":          {},
		"PDB with an outdated status":   {status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3}, blocks: true},
		"AlwaysAllow without healthy pods": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3}, policy: policyv1.AlwaysAllow, observed: true,
		},
		"AlwaysAllow with a healthy pod": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 1}, policy: policyv1.AlwaysAllow, blocks: true, observed: true,
		},
		"IfHealthyBudget": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3}, policy: policyv1.IfHealthyBudget, blocks: true, observed: true,
		},
		"PDB that expects no pods and has healthy ones": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, CurrentHealthy: 2}, blocks: true, observed: true,
		},
		"PDB with SyncFailed": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{
				{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controller"},
			}}, blocks: true, observed: true,
		},
		"PDB with SyncFailed and AlwaysAllow": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, Conditions: []metav1.Condition{
				{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason},
			}}, policy: policyv1.AlwaysAllow, blocks: true, observed: true,
		},
		"PDB with InsufficientPods": {
			status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{
				{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason},
			}}, observed: true,
		},
		"PDB with negative counts": {
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

func TestListPDBs_in_namespaces(t *testing.T) {
	t.Parallel()
	budget := func(namespace, name string) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	r := backwards(t, budget("b", "1"), budget("a", "2"), budget("a", "1"), budget("c", "1"))
	for name, tc := range map[string]struct {
		read func() ([]clusterstate.PDB, error)
		want []string
	}{
		"one namespace": {func() ([]clusterstate.PDB, error) { return clusterstate.ListPDBs(t.Context(), r, "a") }, []string{"a/1", "a/2"}},
		"no namespace":  {func() ([]clusterstate.PDB, error) { return clusterstate.ListPDBs(t.Context(), r, "d") }, nil},
		"several namespaces": {func() ([]clusterstate.PDB, error) {
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

func TestPDBOf_minAvailable(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		least *intstr.IntOrString
		want  int32
	}{
		"not set": {nil, 0}, "a number": {new(intstr.FromInt32(2)), 2}, "a negative number": {new(intstr.FromInt32(-1)), 0},
		"part of the pods": {&intstr.IntOrString{Type: intstr.String, IntVal: 7, StrVal: "50%"}, 0},
	} {
		budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: tc.least}}
		if got := clusterstate.PDBOf(budget).MinAvailable; got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}
