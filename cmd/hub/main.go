// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The hub program upgrades fleets of clusters. It runs on an Open Cluster Management hub.
package main

import (
	"fmt"
	"os"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/hub"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func main() {
	if err := hub.Command(manager.Version()).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "hub:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}
