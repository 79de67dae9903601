// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"

// checkVersion are those of the cluster version operator. A ClusterVersion
// has no condition Degraded: Failing is what it says instead.
func checkVersion(version clusterstate.Version) []string {
	if !version.Failing.IsTrue() {
		return nil
	}
	return []string{"the cluster version operator is failing: " + version.Failing.MessageOrReason()}
}
