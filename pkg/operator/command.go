// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Command returns the command line of an operator with these upgraders. Each watch declares a kind
// of objects that their steps read through the cached Deps.Client. A change of such an object
// triggers a reconcile of every unfinished upgrade.
func Command(version string, upgraders Upgraders, watches ...manager.Kind) *cobra.Command {
	options := manager.Options{Version: version}
	cmd := manager.NewCommand("operator", "Upgrades the OpenShift cluster on which it runs, as its UpgradeConfigs request.", version, func(ctx context.Context) error {
		return Main(ctx, options, clock.RealClock{}, upgraders, watches...)
	})
	cmd.CompletionOptions.HiddenDefaultCmd = true
	options.Bind(cmd.Flags())
	cmd.AddCommand(docsCommand(upgraders))
	return cmd
}
