// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// PDB is what a PodDisruptionBudget says of the pods that it guards.
type PDB struct {
	Namespace, Name string
	// SelectorError says why its selector cannot be read, in one bounded line; empty if
	// it can. One that cannot be read guards nothing, as the API server has it.
	SelectorError string
	// Observed says that what it says of its pods is of the budget as it is now.
	// Until then the Eviction API lets no pod of it go.
	Observed bool
	// BlocksEviction says that it guards pods and lets none of them go.
	BlocksEviction bool

	selector labels.Selector
}

// Selects says whether the pod is one of those that the budget is about. Of
// several budgets that guard a pod, each has a say.
func (b PDB) Selects(p Pod) bool {
	return b.Namespace == p.Namespace && b.selector.Matches(p.Labels)
}

// ListPDBs reads the PodDisruptionBudgets of a namespace, sorted by name.
func ListPDBs(ctx context.Context, r client.Reader, namespace string) ([]PDB, error) {
	budgets, err := listPDBs(ctx, r, func(string) bool { return true }, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the disruption budgets in namespace %s: %w", namespace, err)
	}
	return budgets, nil
}

// ListPDBsIn reads the PodDisruptionBudgets of the namespaces that are
// among those listed, sorted by namespace and name.
func ListPDBsIn(ctx context.Context, r client.Reader, namespaces []string) ([]PDB, error) {
	budgets, err := listPDBs(ctx, r, func(namespace string) bool { return text.MatchesAny(namespace, namespaces) })
	if err != nil {
		return nil, fmt.Errorf("listing the disruption budgets: %w", err)
	}
	return budgets, nil
}

func listPDBs(ctx context.Context, r client.Reader, include func(namespace string) bool, opts ...client.ListOption) ([]PDB, error) {
	var list policyv1.PodDisruptionBudgetList
	if err := r.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var budgets []PDB
	for i := range list.Items {
		if include(list.Items[i].Namespace) {
			budgets = append(budgets, PDBOf(&list.Items[i]))
		}
	}
	slices.SortFunc(budgets, func(a, b PDB) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return budgets, nil
}

// PDBOf are the facts of a PodDisruptionBudget that was read already. The
// selector is read as policy/v1 means it: an empty one matches every pod of the
// namespace, a missing one none.
func PDBOf(budget *policyv1.PodDisruptionBudget) PDB {
	facts := PDB{
		Namespace: budget.Namespace, Name: budget.Name,
		Observed: budget.Status.ObservedGeneration >= budget.Generation, BlocksEviction: blocksEviction(budget),
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		facts.SelectorError, selector = sanitize(err.Error()), labels.Nothing()
	}
	facts.selector = selector
	return facts
}

// blocksEviction does not count a budget that may let all of its pods go because none
// of them is healthy.
func blocksEviction(budget *policyv1.PodDisruptionBudget) bool {
	status, policy := &budget.Status, budget.Spec.UnhealthyPodEvictionPolicy
	if policy != nil && *policy == policyv1.AlwaysAllow && status.CurrentHealthy <= 0 {
		return false
	}
	return status.ExpectedPods > 0 && status.DisruptionsAllowed <= 0
}
