// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

// view is what a pass over a run has read of others.
type view struct {
	upgrade  *fleetv1beta1.ManagedClustersUpgrade // nil means that it does not exist
	held     string                               // why an annotation holds the cluster; empty means that none does
	platform fleet.Platform
	applied  bool // an action or the upgrade is applied
	delivers bool // the work of the platform is one of this attempt
	failing  bool // the agent reports what may fail the run
	pre      *fleetv1alpha1.ActionStatus
	post     *fleetv1alpha1.ActionStatus
	progress progress
}

// progress is what a cluster last reported, and since when.
type progress struct {
	uid     types.UID
	attempt int32
	step    string
	text    string
	at      time.Time
}

// upgradeState is what of a ManagedClustersUpgrade concerns its runs.
type upgradeState struct {
	uid        types.UID
	generation int64
	finished   bool
}

// cache has what is kept between passes. Its loss costs a pass, and delays the report that a
// cluster stalls.
type cache struct {
	mu       sync.Mutex
	views    map[types.NamespacedName]view
	upgrades map[types.NamespacedName]upgradeState
}

func (c *cache) view(key types.NamespacedName) view {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views[key]
}

func (c *cache) setView(key types.NamespacedName, v view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.views == nil {
		c.views = map[types.NamespacedName]view{}
	}
	c.views[key] = v
}

func (c *cache) delete(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.views, key)
}

// upgradeChanged reports whether a change of a ManagedClustersUpgrade concerns its runs.
func (c *cache) upgradeChanged(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := types.NamespacedName{Namespace: upgrade.Namespace, Name: upgrade.Name}
	state := upgradeState{upgrade.UID, upgrade.Generation, isFinished(upgrade)}
	if c.upgrades == nil {
		c.upgrades = map[types.NamespacedName]upgradeState{}
	}
	changed := c.upgrades[key] != state
	c.upgrades[key] = state
	if !upgrade.DeletionTimestamp.IsZero() {
		delete(c.upgrades, key)
		return true
	}
	return changed
}

// isFinished reports whether all clusters of an upgrade are terminal.
func isFinished(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	counters := upgrade.Status.ClustersSummery
	return counters != nil && upgrade.Status.ObservedGeneration == upgrade.Generation &&
		counters.Total > 0 && counters.Complete+counters.Failed == counters.Total
}
