// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"

// versionTroubles are those of the cluster version operator. A ClusterVersion
// has no condition Degraded: Failing is what it says instead.
func versionTroubles(version cluster.Version) []string {
	if !version.Failing.IsTrue() {
		return nil
	}
	return []string{"the cluster version operator is failing: " + version.Failing.Text()}
}
