// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The update-status-controller program aggregates update insights for the OpenShift cluster that it runs on.
package main

import (
	"fmt"
	"os"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

func main() {
	if err := statuscontroller.Command(manager.Version()).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "update-status-controller:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}
