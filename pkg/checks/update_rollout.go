// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// rollout is the progress of all pools, and the nodes that are joining or in no pool.
type rollout struct {
	pools  []clusterstate.PoolProgress
	others []*clusterstate.Node
}

// MissingNodes returns why a pool has machines whose nodes are not known, and that may be outdated, or ""
// if it has none. The machine config operator still counts a node shortly after it was deleted, so
// machines that all have a configuration of the newest release are not missed.
func (f Facts) MissingNodes(p *clusterstate.PoolProgress) string {
	newest := f.NewestUpdate().Version
	known := p.Total() + p.Joining
	if int(p.Pool.Machines) <= known || p.Pool.Updated && newest != "" && f.Configs[p.Pool.Config].Version == newest {
		return ""
	}
	for i := range f.Nodes {
		node := &f.Nodes[i]
		if pools := clusterstate.ConflictingPools(f.Pools, node); slices.Contains(pools, p.Pool.Name) {
			return "node " + node.Name + " is in several custom pools: " + text.JoinNames(pools)
		}
	}
	return fmt.Sprintf("it has %s, but %s known", text.Plural(int(p.Pool.Machines), "machine", "machines"), text.Plural(known, "node is", "nodes are"))
}

// Rollouts returns the rollout of the newest release to each pool, in the order of Pools.
func (f Facts) Rollouts() []clusterstate.PoolProgress { return f.rollout().pools }

// RolloutsByPool returns the rollouts by the name of the pool. It is empty if they cannot be observed.
func (f Facts) RolloutsByPool() map[string]*clusterstate.PoolProgress {
	byPool := map[string]*clusterstate.PoolProgress{}
	if f.Has(SourcePools) && f.Has(SourceNodes) {
		all := f.Rollouts()
		for i := range all {
			byPool[all[i].Pool.Name] = &all[i]
		}
	}
	return byPool
}

func (f Facts) rollout() rollout {
	if f.shared != nil {
		return f.shared()
	}
	return f.computeRollout()
}

// share returns the same facts, which compute the rollouts once for all informers.
func (f Facts) share() Facts {
	f.shared = sync.OnceValue(f.computeRollout)
	return f
}

func (f Facts) computeRollout() rollout {
	newest := f.NewestUpdate()
	pools, others := clusterstate.ProgressOf(f.Pools, f.Nodes, func(node *clusterstate.Node, pool *clusterstate.Pool) clusterstate.NodeProgress {
		return f.nodeProgress(node, pool, newest)
	})
	return rollout{pools, others}
}

// nodeProgress returns how far the rollout of the newest release to a node is. A rollout of a configuration
// that changes no release is no step of it.
func (f Facts) nodeProgress(node *clusterstate.Node, pool *clusterstate.Pool, newest clusterstate.Update) clusterstate.NodeProgress {
	n := clusterstate.NodeProgress{
		Node: node, State: clusterstate.NodeStateOf(node),
		Version: f.Configs[node.CurrentConfig].Version, Outdated: f.isOutdated(node, pool, newest),
		Joining: node.DesiredConfig == "" && clusterstate.IsPlausible(node.Created, f.Now) && f.Now.Sub(node.Created) <= joiningLimit,
	}
	if n.Outdated || f.isOfUpdate(f.Configs[node.DesiredConfig], newest) {
		n.Step = clusterstate.NodeStepOf(node)
	}
	return n
}

// ImageBuildOf returns the build of the OS image that the pool waits for.
func (f Facts) ImageBuildOf(p *clusterstate.PoolProgress) (clusterstate.ImageBuild, bool) {
	if !p.Waits() {
		return clusterstate.ImageBuild{}, false
	}
	build, found := f.ImageBuilds[p.Pool.Config]
	return build, found
}

// NewestUpdate returns the newest entry of the history, or zero if it is empty.
func (f Facts) NewestUpdate() clusterstate.Update {
	if len(f.Version.Updates) == 0 {
		return clusterstate.Update{}
	}
	return f.Version.Updates[0]
}

// isOutdated reports whether a node does not run the newest release. The rendered configuration of the
// node names the version of its release. If that is unknown, the node counts as outdated for as long as
// it does not have the configuration of its pool or the control plane is being updated. A node without a
// configuration is outdated: nothing shows that it runs the release.
func (f Facts) isOutdated(node *clusterstate.Node, pool *clusterstate.Pool, newest clusterstate.Update) bool {
	current := f.Configs[node.CurrentConfig]
	switch {
	case node.DesiredConfig == "":
		return true
	case current.Version == "" || newest.Version == "":
		return clusterstate.IsOutdated(node, pool.Config) || f.UpdatingControlPlane()
	case current.Version != newest.Version:
		return true
	}
	return f.Version.UpdateKind(0) == clusterstate.UpdateMigration && current.Created.Before(newest.Start) &&
		(f.UpdatingControlPlane() || node.CurrentConfig != pool.Config)
}

// isOfUpdate reports whether the newest update rendered a configuration: a configuration of the same
// release that is rendered before or after it is no part of the update.
func (f Facts) isOfUpdate(config clusterstate.Rendered, newest clusterstate.Update) bool {
	return config.Version != "" && config.Version == newest.Version && f.Version.UpdateKind(0) != clusterstate.UpdateInstallation &&
		!config.Created.Before(newest.Start) && (newest.End.IsZero() || !config.Created.After(newest.End))
}

// UpdatingControlPlane reports whether the newest release is not completely installed.
func (f Facts) UpdatingControlPlane() bool {
	_, updating := f.Version.UpdatingTo()
	return updating
}

// isMigrating reports whether the control plane is being updated to another image of the same version.
func (f Facts) isMigrating() bool {
	return f.UpdatingControlPlane() && f.Version.UpdateKind(0) == clusterstate.UpdateMigration
}

// Updating reports whether an update is in progress: on the control plane, or in a pool.
func (f Facts) Updating() bool {
	if f.UpdatingControlPlane() {
		return true
	}
	return slices.ContainsFunc(f.Rollouts(), func(p clusterstate.PoolProgress) bool { return p.Outdated() })
}

// ReleaseOperators returns the ClusterOperators that come with the release, see clusterstate.Version.
func (f Facts) ReleaseOperators() (operators []clusterstate.ClusterOperator, known bool) {
	return f.Version.ReleaseOperators(f.Operators)
}

// IsOperatorUpdated reports whether a ClusterOperator runs the newest release, by the version that it reports. If only
// the image changes, the operator machine-config must also report its new image: it is the one that updates the nodes.
func (f Facts) IsOperatorUpdated(operator clusterstate.ClusterOperator) bool {
	switch {
	case operator.HasRelease(f.NewestUpdate().Version) != clusterstate.Yes:
		return false
	case operator.Name != clusterstate.MachineConfigOperator || !f.isMigrating():
		return true
	}
	return f.MachineConfigImage != "" && operator.Image == f.MachineConfigImage
}
