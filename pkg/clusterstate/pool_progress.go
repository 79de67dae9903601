// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

// PoolProgress is how far the update of the nodes of a pool has come. It is the only answer to that question:
// health gates, the steps of upgrades, the update status, and the command line use it.
type PoolProgress struct {
	Pool Pool
	// Nodes are the nodes of the pool, apart from nodes that are joining, in the order in which they were given.
	Nodes []NodeProgress
	// Joining is the number of nodes that were created so recently that the machine config operator
	// need not have configured them.
	Joining int
	NodeCounts
	// Slots is the number of nodes that may be unavailable at a time.
	Slots int
}

// NodeCounts counts nodes. Updated, Updating, and Pending ones add up to all of them. Unavailable and Degraded ones
// also count among these.
type NodeCounts struct{ Updated, Updating, Pending, Unavailable, Degraded int }

// NodeProgress is how far the update of a node has come.
type NodeProgress struct {
	Node *Node
	// State is why the pool waits for the node.
	State NodeState
	// Step describes what the machine config operator does with the node in this update.
	Step NodeStep
	// Outdated reports that the node does not have what is being installed.
	Outdated bool
	// Version is the version that the node runs; empty if unknown.
	Version string
	// Joining reports that the node counts for nothing yet.
	Joining bool
}

// Updated reports whether the node has what is being installed and nothing is left to be done.
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

// ProgressOf returns the progress of each pool, given the progress of a node in a pool, and the nodes that are
// joining or in no pool.
func ProgressOf(pools []Pool, nodes []Node, of func(*Node, *Pool) NodeProgress) (progress []PoolProgress, others []*Node) {
	progress = make([]PoolProgress, len(pools))
	index := make(map[string]int, len(pools))
	for i := range pools {
		progress[i].Pool, index[pools[i].Name] = pools[i], i
		progress[i].Nodes = make([]NodeProgress, 0, len(nodes)/len(pools)) // pools are often of one size
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

// ConfigProgress returns how far a node has come to the configuration of its pool, whatever release that is of.
func ConfigProgress(node *Node, pool *Pool) NodeProgress {
	return NodeProgress{Node: node, State: NodeStateOf(node), Step: NodeStepOf(node), Outdated: IsOutdated(node, pool.Config)}
}

// Total returns the number of nodes.
func (p *PoolProgress) Total() int { return len(p.Nodes) }

// Outdated reports whether a node of the pool is still to be updated.
func (p *PoolProgress) Outdated() bool { return p.Updating > 0 || p.Pending > 0 }

// Waits reports whether the pool has outdated nodes and updates none of them.
func (p *PoolProgress) Waits() bool { return p.Pending > 0 && p.Updating == 0 }

// PoolState is why a pool is pending.
type PoolState string

// The states, the most severe first.
const (
	PoolDegraded PoolState = "degraded"
	PoolPaused   PoolState = "paused"
	PoolUpdating PoolState = "updating"
	// PoolDone is the state of all other pools.
	PoolDone PoolState = ""
)

// State returns why the pool is pending: it is not updated, or it may have been skipped, since it is
// degraded, or paused although it has machines.
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

// hasConfig reports whether each machine has the configuration of the pool.
func (p *PoolProgress) hasConfig() bool { return p.Pool.Updated && !p.Outdated() }

// RollingOut reports whether nodes of the pool are still to be updated and nothing pauses that.
func (p *PoolProgress) RollingOut() bool { return !p.Pool.Paused && !p.hasConfig() }

// UpToDate reports whether no node of the pool needs an update, although the pool may be paused.
func (p *PoolProgress) UpToDate() bool {
	state := p.State()
	return state == PoolDone || state == PoolPaused && p.hasConfig()
}
