// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/plan"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// complete registers completions for KIND/NAME and for flags that have the same meaning in all commands.
func complete(p *session.Session, root *cobra.Command) {
	byFlag := map[string]session.Completions{
		"to": plan.OfferedVersions, "version": plan.OfferedVersions, "pool": plan.Pools, "accept": plan.OpenRisks,
		"namespace": session.NamesOf(&corev1.NamespaceList{}), "node": session.NamesOf(&corev1.NodeList{}),
	}
	for name, values := range byFlag {
		if root.Flags().Lookup(name) == nil && root.PersistentFlags().Lookup(name) == nil {
			continue
		}
		if err := root.RegisterFlagCompletionFunc(name, p.Completion(values)); err != nil {
			panic(err) // a flag has two completions
		}
	}
	for _, cmd := range root.Commands() {
		complete(p, cmd)
	}
}

// versionCommand prints the version of the program.
func versionCommand(p *session.Session) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: manager.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.Streams.Out, "kubectl-update", p.Version)
			return err
		},
	}
}
