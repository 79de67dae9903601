// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// docsCommand returns the command that prints the page of a runbook, for operators with upgraders of
// their own as well.
func docsCommand(upgraders Upgraders) *cobra.Command {
	return &cobra.Command{
		Use: "docs TYPE", Short: "Prints the runbook of a spec.type in Markdown.", Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			byType, err := upgraders(runbooks.Deps{Config: config.Default()})
			if err != nil {
				return err
			}
			upgrader := byType[args[0]]
			if upgrader == nil {
				return fmt.Errorf("unknown type %q, there are: %s", args[0], strings.Join(slices.Sorted(maps.Keys(byType)), ", "))
			}
			page, err := runbooks.Page(args[0], fmt.Sprintf("an UpgradeConfig of type `%s`", args[0]), "Times are those of the default configuration.", upgrader.Runbook(&v1alpha1.UpgradeConfig{}))
			if err != nil {
				return fmt.Errorf("the runbook of upgrader %q: %w", args[0], err)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), page)
			return err
		},
	}
}
