// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// docsCommand returns the command that prints the documentation of a runbook. It also works for
// operators with custom upgraders.
func docsCommand(register Upgraders) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use: "docs TYPE", Short: "Prints the runbook of a spec.type in Markdown, or in JSON for oc update preview.", Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			byType, err := register(upgraders.Deps{Config: config.Default()})
			if err != nil {
				return err
			}
			upgrader := byType[args[0]]
			if upgrader == nil {
				return fmt.Errorf("unknown type %q, there are: %s", args[0], strings.Join(slices.Sorted(maps.Keys(byType)), ", "))
			}
			book := upgrader.Runbook(upgraders.Attempt{})
			page, err := upgraders.Page(args[0], fmt.Sprintf("an UpgradeConfig of type `%s`", args[0]), "Times are from the default configuration.", book)
			if err != nil {
				return fmt.Errorf("the runbook of upgrader %q: %w", args[0], err)
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(book)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), page)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "markdown", "format: markdown or json")
	return cmd
}
