// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
)

// Command is the command line of an operator that has these upgraders.
func Command(version string, upgraders Upgraders) *cobra.Command {
	var options Options
	cmd := &cobra.Command{
		Use:           "operator",
		Short:         "Carries out the UpgradeConfigs of the cluster on which it runs.",
		Version:       version,
		Args:          noArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Main(cmd.Context(), options, clock.RealClock{}, upgraders)
		},
	}
	options.Bind(cmd.Flags())
	cmd.SetFlagErrorFunc(flagError)
	return cmd
}

const seeHelp = `"operator --help" lists the flags`

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is no flag, and there are no other arguments; %s", args[0], seeHelp)
	}
	return nil
}

// flagError says what would be right.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "bool" {
		return fmt.Errorf("--%s: is %q, must be true or false", invalid.GetFlag().Name, invalid.GetValue())
	}
	return fmt.Errorf("%w; %s", err, seeHelp)
}
