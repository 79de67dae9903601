// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// budgetsIn reads the PodDisruptionBudgets of the namespaces in which nothing
// is ever forced. There a budget that lets no pod go blocks a drain for good.
func budgetsIn(unforced []string) func(context.Context, client.Reader) ([]cluster.Budget, error) {
	return func(ctx context.Context, r client.Reader) ([]cluster.Budget, error) {
		return cluster.ReadBudgetsAmong(ctx, r, unforced)
	}
}

// budgetTroubles are the budgets that let no pod go. Of one that was not looked
// at since it was changed nobody knows what it lets go.
func budgetTroubles(budgets []cluster.Budget) []string {
	var blocking, unknown []string
	for _, budget := range budgets {
		name := budget.Namespace + "/" + budget.Name
		switch {
		case !budget.Observed:
			unknown = append(unknown, name)
		case budget.Blocks:
			blocking = append(blocking, name)
		}
	}
	return append(group("disruption budgets that let no pod go", blocking), group("disruption budgets not observed yet", unknown)...)
}
