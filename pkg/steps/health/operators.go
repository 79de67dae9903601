// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// checkOperators are the cluster operators that are unavailable or degraded.
// As for the cluster version operator, one that does not say that it is
// available is not, and one that does not say that it is not degraded is.
func checkOperators(operators []clusterstate.ClusterOperator) []string {
	var unavailable, degraded []string
	for _, operator := range operators {
		if !operator.Available.IsTrue() {
			unavailable = append(unavailable, text.WithReason(operator.Name, operator.Available.Reason))
		}
		if !operator.Degraded.IsFalse() {
			degraded = append(degraded, text.WithReason(operator.Name, operator.Degraded.Reason))
		}
	}
	return append(formatGroup("cluster operators unavailable", unavailable), formatGroup("cluster operators degraded", degraded)...)
}
