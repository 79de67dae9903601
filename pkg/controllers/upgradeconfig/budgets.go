// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// budgetChanged lets through PodDisruptionBudgets that come to block drains, or
// cease to. Their counts change with every pod.
type budgetChanged struct{ predicate.Funcs }

// Update compares two states of a budget.
func (budgetChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*policyv1.PodDisruptionBudget)
	after, okAfter := e.ObjectNew.(*policyv1.PodDisruptionBudget)
	if !ok || !okAfter {
		return true
	}
	was, is := cluster.BudgetOf(before), cluster.BudgetOf(after)
	return was.Blocks != is.Blocks || was.Observed != is.Observed
}
