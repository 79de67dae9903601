// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

// NodeState is why a pool waits for a node, as messages name it.
type NodeState string

// The states, the most severe first. A node has the first one that applies.
const (
	NodeStateDegraded     NodeState = "degraded"
	NodeStateNotReady     NodeState = "not ready"
	NodeStateBeingDeleted NodeState = "being deleted by the cluster autoscaler"
	NodeStateCordoned     NodeState = "cordoned"
	NodeStateDraining     NodeState = "being drained"
	NodeStateUpdating     NodeState = "being updated"
	// NodeStateIdle is the state of all other nodes: updated, or waiting for their turn.
	NodeStateIdle NodeState = ""
)

// NodeStates returns the states for which a pool waits, the most severe first.
func NodeStates() []NodeState {
	return []NodeState{NodeStateDegraded, NodeStateNotReady, NodeStateBeingDeleted, NodeStateCordoned, NodeStateDraining, NodeStateUpdating}
}

// NodeStateOf returns the state of a node. It is the only answer to that question: the messages of
// upgrades and the update status use it. A node that is not ready or cordoned counts among those that
// may be unavailable at a time, so other nodes may wait for it.
func NodeStateOf(node *Node) NodeState {
	switch {
	case node.Degraded():
		return NodeStateDegraded
	case !node.Ready:
		return NodeStateNotReady
	case node.Cordoned && node.BeingDeleted:
		return NodeStateBeingDeleted
	case node.CordonedByHand():
		return NodeStateCordoned
	case node.Drain.Active:
		return NodeStateDraining
	case node.Updating:
		return NodeStateUpdating
	}
	return NodeStateIdle
}

// NodeStep describes what the machine config operator is doing with a node.
type NodeStep string

// The steps of the update of a node, in their order.
const (
	StepNone      NodeStep = ""
	StepDraining  NodeStep = "Draining"
	StepUpdating  NodeStep = "Updating"
	StepRebooting NodeStep = "Rebooting"
)

// NodeStepOf returns what the machine config operator is doing with a node. A node that was drained
// and does not answer is rebooting: machine config daemons before OpenShift 4.14 do not report it.
func NodeStepOf(node *Node) NodeStep {
	drained := node.AppliedDrain != "" && node.AppliedDrain == node.DesiredDrain
	switch {
	case node.DesiredConfig == "" || !node.Updating:
		return StepNone
	case node.State == "Rebooting" || drained && !node.Ready && !node.Degraded():
		return StepRebooting
	case node.Drain.Active, node.DrainNotCordoned():
		return StepDraining
	}
	return StepUpdating
}

// IsOutdated reports whether the machine config operator manages the node and the node does not have
// the configuration.
func IsOutdated(n *Node, config string) bool {
	return n.DesiredConfig != "" && n.CurrentConfig != config
}
