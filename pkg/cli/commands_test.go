// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// Each command is either known to be read-only or has the flags for commands that make changes.
func TestCommands_that_change_something_ask(t *testing.T) {
	t.Parallel()
	reading := []string{
		"kubectl-update status", "kubectl-update preview", "kubectl-update history", "kubectl-update watch", "kubectl-update report",
		"kubectl-update releases", "kubectl-update informers", "kubectl-update conformance", "kubectl-update version", "kubectl-update migrate-config", "kubectl-update migrate-maintenance",
		"kubectl-update fleet status", "kubectl-update fleet clusters", "kubectl-update fleet report", "kubectl-update fleet plan",
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := "kubectl-update" + strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath())
		if cmd.HasSubCommands() && path != "kubectl-update status" || slices.Contains(reading, path) {
			return
		}
		if cmd.Flags().Lookup("yes") == nil || cmd.Flags().Lookup("dry-run") == nil {
			t.Errorf("%s has no --yes and --dry-run", path)
		}
	}
	walk(Root(session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{}})))
}
