// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Command returns the command line of an operator with these upgraders. Each watch declares a kind of
// object that their steps read through Deps.Client, which reads from the cache: a change of such an
// object reconciles every upgrade that is not finished.
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
