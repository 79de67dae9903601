// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// PoolRollout is how far the rollout of the newest release to the machines of a pool is.
type PoolRollout struct {
	Pool clusterstate.Pool
	// Nodes are those of the pool, apart from those that are joining, sorted by name.
	Nodes []NodeRollout
	// Joining is the number of nodes that were created so recently that the machine config operator
	// need not have configured them.
	Joining int
	// Updated, Updating, and Pending add up to the number of nodes. Unavailable and Degraded nodes
	// count among those, too.
	Updated, Updating, Pending, Unavailable, Degraded int
	// Slots is the number of nodes that may be unavailable at a time.
	Slots int
}

// Total returns the number of nodes.
func (p PoolRollout) Total() int { return len(p.Nodes) }

// Outdated reports whether a node of the pool is still to be updated to the newest release.
func (p PoolRollout) Outdated() bool { return p.Updating > 0 || p.Pending > 0 }

// NodeRollout is how far the update of a node is.
type NodeRollout struct {
	Node clusterstate.Node
	// State is why the pool waits for the node.
	State checks.NodeState
	// Step is what the machine config operator does with the node in this update. It is none for a
	// rollout of a configuration that changes no release.
	Step checks.NodeStep
	// Outdated reports that the node does not run the newest release.
	Outdated bool
	// Version is the version that the node runs; empty means that it is unknown.
	Version string
}

// Updated reports whether the node runs the newest release and nothing is left to be done.
func (n NodeRollout) Updated() bool { return !n.Outdated && n.Step == checks.StepNone }

// rollout is the rollout to all pools, and the nodes to which there is none.
type rollout struct {
	pools []PoolRollout
	// others are the nodes that are joining, or that are in no pool.
	others []clusterstate.Node
}

// MissingMachines reports whether the pool has machines whose nodes are not known, and that may be
// outdated. The machine config operator still counts a node shortly after it was deleted, so that
// machines that all have a configuration of the newest release are not missed.
func (f Facts) MissingMachines(p PoolRollout) bool {
	newest := f.NewestUpdate().Version
	updated := p.Pool.Updated && newest != "" && f.Configs[p.Pool.Config].Version == newest
	return !updated && int(p.Pool.Machines) > p.Total()+p.Joining
}

// Rollouts returns the rollout of the newest release to each pool, in the order of Pools.
func (f Facts) Rollouts() []PoolRollout { return f.rollout().pools }

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
	pools, index := make([]PoolRollout, len(f.Pools)), make(map[string]int, len(f.Pools))
	for i, pool := range f.Pools {
		pools[i].Pool, index[pool.Name] = pool, i
		pools[i].Nodes = make([]NodeRollout, 0, f.Nodes.Len()/len(f.Pools)) // pools are often of one size
	}
	var others []clusterstate.Node
	newest := f.NewestUpdate()
	for _, node := range f.Nodes.All() {
		i, found := index[clusterstate.PoolOf(f.Pools, node)]
		joining := node.DesiredConfig == "" && clusterstate.IsPlausible(node.Created, f.Now) && f.Now.Sub(node.Created) <= notReadyWarning
		if !found || joining {
			others = append(others, node)
			if found {
				pools[i].Joining++
			}
			continue
		}
		pools[i].add(f.nodeRollout(node, pools[i].Pool, newest))
	}
	for i := range pools {
		pools[i].Slots = pools[i].Pool.Slots(pools[i].Total())
	}
	return rollout{pools, others}
}

func (p *PoolRollout) add(n NodeRollout) {
	p.Nodes = append(p.Nodes, n)
	switch {
	case n.Step != checks.StepNone:
		p.Updating++
	case n.Outdated:
		p.Pending++
	default:
		p.Updated++
	}
	if !n.Node.Ready || n.Node.Cordoned {
		p.Unavailable++
	}
	if n.Node.Degraded() {
		p.Degraded++
	}
}

func (f Facts) nodeRollout(node clusterstate.Node, pool clusterstate.Pool, newest clusterstate.Update) NodeRollout {
	n := NodeRollout{
		Node: node, State: checks.NodeStateOf(node),
		Version: f.Configs[node.CurrentConfig].Version, Outdated: f.isOutdated(node, pool, newest),
	}
	if n.Outdated || f.isOfUpdate(f.Configs[node.DesiredConfig], newest) {
		n.Step = checks.NodeStepOf(node)
	}
	return n
}

// NewestUpdate returns the newest entry of the history; zero means that it is empty.
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
func (f Facts) isOutdated(node clusterstate.Node, pool clusterstate.Pool, newest clusterstate.Update) bool {
	current := f.Configs[node.CurrentConfig]
	switch {
	case node.DesiredConfig == "":
		return true
	case current.Version == "" || newest.Version == "":
		return checks.IsOutdated(node, pool.Config) || f.UpdatingControlPlane()
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
	for _, p := range f.Rollouts() {
		if p.Outdated() {
			return true
		}
	}
	return false
}

// ReleaseOperators returns the ClusterOperators that come with the release, or all of them if none is
// annotated, which annotated reports.
func (f Facts) ReleaseOperators() (operators []clusterstate.ClusterOperator, annotated bool) {
	for i := range f.Operators {
		if f.Operators[i].InRelease {
			operators = append(operators, f.Operators[i])
		}
	}
	if len(operators) == 0 {
		return f.Operators, len(f.Operators) == 0
	}
	return operators, true
}

// IsOperatorUpdated reports whether a ClusterOperator runs the newest release, by the version that it
// reports. If only the image changes, the operator machine-config must report its new image, too: it is
// the one that updates the nodes.
func (f Facts) IsOperatorUpdated(operator clusterstate.ClusterOperator) bool {
	newest := f.NewestUpdate()
	switch {
	case newest.Version == "" || operator.Version != newest.Version:
		return false
	case operator.Name != clusterstate.MachineConfigOperator || !f.isMigrating():
		return true
	}
	return f.MachineConfigImage != "" && operator.Image == f.MachineConfigImage
}
