// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator carries out the UpgradeConfigs of the cluster on which it runs.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var options operator.Options
	cmd := &cobra.Command{
		Use:           "operator",
		Short:         "Carries out the UpgradeConfigs of the cluster on which it runs.",
		Version:       programVersion(),
		Args:          noArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return operator.Main(cmd.Context(), options, clock.RealClock{}, upgraders)
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

// upgraders are the ways to upgrade a cluster, by spec.type.
func upgraders(t runbooks.Tools) map[string]upgradeconfig.ClusterUpgrader {
	return map[string]upgradeconfig.ClusterUpgrader{
		"OSD": runbooks.OSD{Tools: t},
		"ARO": runbooks.ARO{Tools: t},
	}
}
