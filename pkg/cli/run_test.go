// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
)

// run runs a command as a plugin of oc.
func run(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, Root, args...)
}

// runOn runs a command on a cluster. Its terminal is interactive only if there is an answer.
func runOn(t *testing.T, cluster *clitest.FakeCluster, answer string, args ...string) clitest.Result {
	t.Helper()
	return clitest.RunOn(t, Root, cluster, answer, args...)
}
