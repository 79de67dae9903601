// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator with a changed runbook stands for its next version: it adds two steps to the runbook
// of OSD, renames one, and removes two.
package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func main() {
	cobra.CheckErr(operator.Command("v0.0.0-changed", register).ExecuteContext(ctrl.SetupSignalHandler()))
}

func register(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
	return map[string]upgraders.ClusterUpgrader{"OSD": changed{upgraders.OSD{Deps: deps}}}, nil
}

type changed struct{ upgraders.OSD }

func (c changed) Runbook(attempt upgraders.Attempt) engine.Runbook {
	table := c.OSD.Runbook(attempt).
		InsertAfter("StartedNotificationSent", added("AddedBeforeTheCommit")).
		InsertAfter("PostClusterHealthCheck", added("AddedAtTheEnd"))
	table.Steps = slices.DeleteFunc(table.Steps, func(step engine.Step) bool {
		return step.Name == "ExternalDependenciesAvailable" || step.Name == "PostUpgradeProcedures"
	})
	for i := range table.Steps {
		if step := &table.Steps[i]; step.Name == "ControlPlaneUpgraded" {
			step.Name, step.FormerNames = "ControlPlaneReplaced", []string{"ControlPlaneUpgraded"}
		}
	}
	return table
}

func added(name string) engine.Step {
	return engine.Step{Name: name, Doc: "Is done at once.", Do: func(context.Context, engine.Run) (engine.Result, error) {
		return engine.Done("the changed runbook has this step"), nil
	}}
}
