// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// checkPools are the machine config pools that are degraded, or paused: the
// machines of a paused pool, if it has any, would be left behind.
func checkPools(pools []clusterstate.Pool) []string {
	var degraded, paused []string
	for _, pool := range pools {
		if pool.Degraded.IsTrue() {
			degraded = append(degraded, text.WithReason(pool.Name, pool.Degraded.MessageOrReason()))
		}
		if pool.Paused && !pool.Empty() {
			paused = append(paused, pool.Name)
		}
	}
	return append(formatGroup("machine config pools degraded", degraded), formatGroup("machine config pools paused", paused)...)
}
