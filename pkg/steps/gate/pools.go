// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import "github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"

// poolTroubles are the machine config pools that are degraded, or paused: the
// machines of a paused pool, if it has any, would be left behind.
func poolTroubles(pools []cluster.Pool) []string {
	var degraded, paused []string
	for _, pool := range pools {
		if pool.Degraded.IsTrue() {
			degraded = append(degraded, cluster.Because(pool.Name, pool.Degraded.Text()))
		}
		if pool.Paused && !pool.Empty() {
			paused = append(paused, pool.Name)
		}
	}
	return append(group("machine config pools degraded", degraded), group("machine config pools paused", paused)...)
}
