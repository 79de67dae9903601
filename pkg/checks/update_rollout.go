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

// rollout holds the progress of all pools and the nodes that are joining or belong to no pool.
type rollout struct {
	pools  []clusterstate.PoolProgress
	others []*clusterstate.Node
}

// MissingNodes explains which machines of a pool have unknown nodes that may be outdated, or returns "" if
// there are none. The machine config operator still counts a node shortly after its deletion, so nodes are
// not missing if all machines have a configuration of the newest release.
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

// Rollouts returns the progress of the newest release in each pool, in the order of Pools.
func (f Facts) Rollouts() []clusterstate.PoolProgress { return f.rollout().pools }

// RolloutsByPool maps pool names to rollouts. It is empty if they cannot be observed.
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

// share returns the same facts with rollouts that are computed only once for all informers.
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

// nodeProgress returns a node's progress towards the newest release. Rolling out a configuration within the
// same release does not count.
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

// ImageBuildOf returns the OS image build that the pool is waiting for.
func (f Facts) ImageBuildOf(p *clusterstate.PoolProgress) (clusterstate.ImageBuild, bool) {
	if !p.Waits() {
		return clusterstate.ImageBuild{}, false
	}
	build, found := f.ImageBuilds[p.Pool.Config]
	return build, found
}

// NewestUpdate returns the newest entry of the history, or the zero value if the history is empty.
func (f Facts) NewestUpdate() clusterstate.Update {
	if len(f.Version.Updates) == 0 {
		return clusterstate.Update{}
	}
	return f.Version.Updates[0]
}

// isOutdated reports whether a node does not run the newest release. The rendered configuration of the node
// names its release. If that is unknown, the node is outdated while it lacks the configuration of its pool or
// the control plane is being updated. A node without a configuration is outdated, because nothing shows that
// it runs the release.
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

// isOfUpdate reports whether a configuration was rendered for the newest update. Configurations of the same
// release that are rendered before or after the update do not count.
func (f Facts) isOfUpdate(config clusterstate.Rendered, newest clusterstate.Update) bool {
	return config.Version != "" && config.Version == newest.Version && f.Version.UpdateKind(0) != clusterstate.UpdateInstallation &&
		!config.Created.Before(newest.Start) && (newest.End.IsZero() || !config.Created.After(newest.End))
}

// UpdatingControlPlane reports whether the installation of the newest release is not complete.
func (f Facts) UpdatingControlPlane() bool {
	_, updating := f.Version.UpdatingTo()
	return updating
}

// isMigrating reports whether the control plane is being updated to another image of the same version.
func (f Facts) isMigrating() bool {
	return f.UpdatingControlPlane() && f.Version.UpdateKind(0) == clusterstate.UpdateMigration
}

// Updating reports whether the control plane or a pool is being updated.
func (f Facts) Updating() bool {
	if f.UpdatingControlPlane() {
		return true
	}
	return slices.ContainsFunc(f.Rollouts(), func(p clusterstate.PoolProgress) bool { return p.Outdated() })
}

// ReleaseOperators returns the ClusterOperators that are part of the release. See clusterstate.Version.
func (f Facts) ReleaseOperators() (operators []clusterstate.ClusterOperator, known bool) {
	return f.Version.ReleaseOperators(f.Operators)
}

// IsOperatorUpdated reports whether a ClusterOperator reports the version of the newest release. If only the
// image changes, machine-config must also report its new image, because it updates the nodes.
func (f Facts) IsOperatorUpdated(operator clusterstate.ClusterOperator) bool {
	switch {
	case operator.HasRelease(f.NewestUpdate().Version) != clusterstate.Yes:
		return false
	case operator.Name != clusterstate.MachineConfigOperator || !f.isMigrating():
		return true
	}
	return f.MachineConfigImage != "" && operator.Image == f.MachineConfigImage
}
