// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

// NodeState describes why a pool waits for a node, as shown in messages.
type NodeState string

// States of a node, most severe first. The first one that applies is the state of the node.
const (
	NodeStateDegraded     NodeState = "degraded"
	NodeStateNotReady     NodeState = "not ready"
	NodeStateBeingDeleted NodeState = "being deleted by the cluster autoscaler"
	NodeStateCordoned     NodeState = "cordoned"
	NodeStateDraining     NodeState = "being drained"
	NodeStateUpdating     NodeState = "being updated"
	// NodeStateIdle is the state of all other nodes, either updated or waiting for their turn.
	NodeStateIdle NodeState = ""
)

// NodeStates returns the states that make a pool wait, most severe first.
func NodeStates() []NodeState {
	return []NodeState{NodeStateDegraded, NodeStateNotReady, NodeStateBeingDeleted, NodeStateCordoned, NodeStateDraining, NodeStateUpdating}
}

// NodeStateOf returns the state of a node. Messages of upgrades and the update status both rely on it. A node
// that is not ready or cordoned counts as unavailable, so other nodes may have to wait for it.
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

// Steps of a node update in order.
const (
	StepNone      NodeStep = ""
	StepDraining  NodeStep = "Draining"
	StepUpdating  NodeStep = "Updating"
	StepRebooting NodeStep = "Rebooting"
)

// NodeStepOf returns what the machine config operator is doing with a node. A drained node that does not
// respond counts as rebooting, because machine config daemons before OpenShift 4.14 do not report reboots.
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

// IsOutdated reports whether the machine config operator manages the node and the node lacks the
// configuration.
func IsOutdated(n *Node, config string) bool {
	return n.DesiredConfig != "" && n.CurrentConfig != config
}
