// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator program upgrades the OpenShift cluster that it runs on, as requested by UpgradeConfigs. Its
// subcommand approve-operators approves operator upgrades. The Job of a fleet runs it.
package main

import (
	"fmt"
	"os"
	"strings"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func main() {
	cmd := operator.Command(manager.Version(), register)
	cmd.AddCommand(operator.ApproveCommand(os.Getenv, clock.RealClock{}))
	if err := cmd.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(operator.ExitCode(err))
	}
}

// register returns the cluster upgraders by spec.type. They have no settings of their own.
func register(t upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
	return map[string]upgraders.ClusterUpgrader{
		"OSD": upgraders.OSD{Deps: t},
		"ARO": upgraders.ARO{Deps: t},
	}, t.Config.Custom.Decode(&struct{}{})
}
