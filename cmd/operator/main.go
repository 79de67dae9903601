// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator upgrades the OpenShift cluster on which it runs, as its UpgradeConfigs request.
package main

import (
	"fmt"
	"os"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

func main() {
	if err := operator.Command(manager.Version(), upgraders).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// upgraders returns the cluster upgraders by spec.type.
func upgraders(t runbooks.Deps) map[string]upgradeconfig.ClusterUpgrader {
	return map[string]upgradeconfig.ClusterUpgrader{
		"OSD": runbooks.OSD{Deps: t},
		"ARO": runbooks.ARO{Deps: t},
	}
}
