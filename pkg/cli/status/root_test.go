// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// root returns a root command with the commands of this package.
func root(s *session.Session) *cobra.Command {
	return session.NewRoot(s, NewCommand(s))
}
