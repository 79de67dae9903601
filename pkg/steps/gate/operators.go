// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"

// operatorTroubles are the cluster operators that are unavailable or degraded.
// As for the cluster version operator, one that does not say that it is
// available is not, and one that does not say that it is not degraded is.
func operatorTroubles(operators []cluster.Operator) []string {
	var unavailable, degraded []string
	for _, operator := range operators {
		if !operator.Available.IsTrue() {
			unavailable = append(unavailable, cluster.Because(operator.Name, operator.Available.Reason))
		}
		if !operator.Degraded.IsFalse() {
			degraded = append(degraded, cluster.Because(operator.Name, operator.Degraded.Reason))
		}
	}
	return append(group("cluster operators unavailable", unavailable), group("cluster operators degraded", degraded)...)
}
