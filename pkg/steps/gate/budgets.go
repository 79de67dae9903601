// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"

// budgetTroubles are the PodDisruptionBudgets that would block a drain for good:
// those that let no pod go, in namespaces in which nothing is ever forced. Of
// one that was not looked at since it was changed nobody knows what it lets go.
func budgetTroubles(unforced []string) func([]cluster.Budget) []string {
	return func(budgets []cluster.Budget) []string {
		var blocking, unknown []string
		for _, budget := range budgets {
			name := budget.Namespace + "/" + budget.Name
			switch {
			case !cluster.Among(budget.Namespace, unforced):
			case !budget.Observed:
				unknown = append(unknown, name)
			case budget.Blocks:
				blocking = append(blocking, name)
			}
		}
		return append(group("disruption budgets that let no pod go", blocking), group("disruption budgets not observed yet", unknown)...)
	}
}
