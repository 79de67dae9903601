// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Command returns the command line of an operator with these upgraders. Each watch declares a kind of
// object that their steps read through Deps.Client, which reads from the cache: a change of such an
// object reconciles every upgrade that is not finished.
func Command(version string, upgraders Upgraders, watches ...manager.Kind) *cobra.Command {
	options := manager.Options{Version: version}
	cmd := &cobra.Command{
		Use:           "operator",
		Short:         "Upgrades the OpenShift cluster on which it runs, as its UpgradeConfigs request.",
		Version:       version,
		Args:          manager.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Main(cmd.Context(), options, clock.RealClock{}, upgraders, watches...)
		},
	}
	options.Bind(cmd.Flags())
	cmd.SetFlagErrorFunc(manager.FlagError)
	return cmd
}
