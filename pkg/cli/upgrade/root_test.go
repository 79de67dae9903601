// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// root returns a root command with the commands of this package.
func root(s *session.Session) *cobra.Command {
	return session.NewRoot(s, append(NewActionCommands(s), NewScheduleCommand(s), NewPreviewCommand(s), NewHistoryCommand(s), NewWatchCommand(s), NewReportCommand(s), NewAcknowledgeCommand(s))...)
}

// run runs a command as a plugin of oc.
func run(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, root, args...)
}

// runOn runs a command on a cluster. Its terminal is interactive only if there is an answer.
func runOn(t *testing.T, cluster *clitest.FakeCluster, answer string, args ...string) clitest.Result {
	t.Helper()
	return clitest.RunOn(t, root, cluster, answer, args...)
}
