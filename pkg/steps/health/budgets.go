// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// readBudgetsIn reads the PodDisruptionBudgets of the namespaces in which nothing
// is ever forced. There a budget that lets no pod go blocks a drain for good.
func readBudgetsIn(noForceNamespaces []string) func(context.Context, client.Reader) ([]clusterstate.PDB, error) {
	return func(ctx context.Context, r client.Reader) ([]clusterstate.PDB, error) {
		return clusterstate.ListPDBsIn(ctx, r, noForceNamespaces)
	}
}

// checkBudgets are the budgets that let no pod go. Of one that was not looked
// at since it was changed nobody knows what it lets go.
func checkBudgets(budgets []clusterstate.PDB) []string {
	var blocking, unknown []string
	for _, budget := range budgets {
		name := budget.Namespace + "/" + budget.Name
		switch {
		case !budget.Observed:
			unknown = append(unknown, name)
		case budget.BlocksEviction:
			blocking = append(blocking, name)
		}
	}
	return append(formatGroup("disruption budgets that let no pod go", blocking), formatGroup("disruption budgets not observed yet", unknown)...)
}
