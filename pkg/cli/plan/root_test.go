// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// root returns a root command with the commands of this package.
func root(s *session.Session) *cobra.Command {
	return session.NewRoot(s, NewReleasesCommand(s), NewChannelCommand(s), NewClearCommand(s), NewPreChecksCommand(s), NewStartCommand(s), NewControlPlaneCommand(s), NewWorkerNodesCommand(s))
}

// run runs a command as a plugin of oc.
func run(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, root, args...)
}
