// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/commandline"
)

// Command is the command line of an operator that has these upgraders.
func Command(version string, upgraders Upgraders) *cobra.Command {
	options := Options{Version: version}
	cmd := &cobra.Command{
		Use:           "operator",
		Short:         "Carries out the UpgradeConfigs of the cluster on which it runs.",
		Version:       version,
		Args:          commandline.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Main(cmd.Context(), options, clock.RealClock{}, upgraders)
		},
	}
	options.Bind(cmd.Flags())
	cmd.SetFlagErrorFunc(commandline.FlagError)
	return cmd
}
