// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

// PoolProgress is the progress of updating the nodes of a pool. Health gates, the steps of upgrades, the
// update status, and the command line all rely on it.
type PoolProgress struct {
	Pool Pool
	// Nodes holds the nodes of the pool in the given order, except for joining nodes.
	Nodes []NodeProgress
	// Joining counts nodes so new that the machine config operator may not have configured them yet.
	Joining int
	NodeCounts
	// Slots is how many nodes may be unavailable at a time.
	Slots int
}

// NodeCounts counts nodes. Updated, Updating, and Pending add up to the total. Unavailable and Degraded nodes
// are also included in those counts.
type NodeCounts struct{ Updated, Updating, Pending, Unavailable, Degraded int }

// NodeProgress is the progress of updating a node.
type NodeProgress struct {
	Node *Node
	// State says why the pool waits for the node.
	State NodeState
	// Step is what the machine config operator is doing with the node in this update.
	Step NodeStep
	// Outdated is set if the node lacks what is being installed.
	Outdated bool
	// Version is the version on the node, or empty if it is unknown.
	Version string
	// Joining is set if the node does not count yet.
	Joining bool
}

// Updated reports whether the node is up to date and nothing remains to be done.
func (n NodeProgress) Updated() bool { return !n.Outdated && n.Step == StepNone }

// Add counts a node.
func (c *NodeCounts) Add(n *NodeProgress) {
	switch {
	case n.Step != StepNone:
		c.Updating++
	case n.Outdated:
		c.Pending++
	default:
		c.Updated++
	}
	if !n.Node.Ready || n.Node.Cordoned {
		c.Unavailable++
	}
	if n.Node.Degraded() {
		c.Degraded++
	}
}

// ProgressOf returns the progress of each pool, and the nodes that are joining or belong to no pool. The
// given function returns the progress of a single node.
func ProgressOf(pools []Pool, nodes []Node, of func(*Node, *Pool) NodeProgress) (progress []PoolProgress, others []*Node) {
	progress = make([]PoolProgress, len(pools))
	index := make(map[string]int, len(pools))
	for i := range pools {
		progress[i].Pool, index[pools[i].Name] = pools[i], i
		progress[i].Nodes = make([]NodeProgress, 0, len(nodes)/len(pools)) // pools often have the same size
	}
	for i := range nodes {
		at, found := index[PoolOf(pools, &nodes[i])]
		if !found {
			others = append(others, &nodes[i])
			continue
		}
		p := &progress[at]
		n := of(&nodes[i], &p.Pool)
		if n.Joining {
			others, p.Joining = append(others, n.Node), p.Joining+1
			continue
		}
		p.Nodes = append(p.Nodes, n)
		p.Add(&n)
	}
	for i := range progress {
		progress[i].Slots = progress[i].Pool.Slots(progress[i].Total())
	}
	return progress, others
}

// ConfigProgress returns a node's progress towards its pool's configuration, regardless of the release.
func ConfigProgress(node *Node, pool *Pool) NodeProgress {
	return NodeProgress{Node: node, State: NodeStateOf(node), Step: NodeStepOf(node), Outdated: IsOutdated(node, pool.Config)}
}

// Total returns the number of nodes.
func (p *PoolProgress) Total() int { return len(p.Nodes) }

// Outdated reports whether any node of the pool still needs the update.
func (p *PoolProgress) Outdated() bool { return p.Updating > 0 || p.Pending > 0 }

// Waits reports whether the pool has outdated nodes but is not updating any of them.
func (p *PoolProgress) Waits() bool { return p.Pending > 0 && p.Updating == 0 }

// PoolState says why a pool is pending.
type PoolState string

// States of a pool, most severe first.
const (
	PoolDegraded PoolState = "degraded"
	PoolPaused   PoolState = "paused"
	PoolUpdating PoolState = "updating"
	// PoolDone is the state of all other pools.
	PoolDone PoolState = ""
)

// State says why the pool is pending: it is not updated, or it may have been skipped because it is degraded,
// or because it is paused and has machines.
func (p *PoolProgress) State() PoolState {
	switch {
	case p.Pool.Degraded.IsTrue():
		return PoolDegraded
	case p.Pool.Paused && p.Pool.Empty() && p.Total() == 0:
		return PoolDone
	case p.Pool.Paused:
		return PoolPaused
	case p.hasConfig():
		return PoolDone
	}
	return PoolUpdating
}

// hasConfig reports whether all machines have the pool's configuration.
func (p *PoolProgress) hasConfig() bool { return p.Pool.Updated && !p.Outdated() }

// RollingOut reports whether nodes still need an update and the pool is not paused.
func (p *PoolProgress) RollingOut() bool { return !p.Pool.Paused && !p.hasConfig() }

// UpToDate reports whether no node of the pool needs an update. The pool may be paused.
func (p *PoolProgress) UpToDate() bool {
	state := p.State()
	return state == PoolDone || state == PoolPaused && p.hasConfig()
}
