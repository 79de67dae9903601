// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Load compares a node's amount of a resource with what pods request, in cores or bytes.
type Load struct {
	Allocatable float64
	// Requested is the sum of the requests of all pods on the node. Movable is the part of it that a drain
	// moves to other nodes.
	Requested, Movable float64
	// LargestPod is the largest request of any pod that a drain moves.
	LargestPod float64
}

func (l Load) free() float64 { return max(l.Allocatable-l.Requested, 0) }

// NodeLoad holds the loads of a node.
type NodeLoad struct {
	Node string
	// Schedulable is set if pods of other nodes may move to the node.
	Schedulable bool
	// Loads maps resource names to loads. Unknown resources are missing.
	Loads map[string]Load
}

// PoolLoad holds the loads of a pool's nodes.
type PoolLoad struct {
	Pool string
	// Unavailable is how many nodes are drained at a time.
	Unavailable int
	Nodes       []NodeLoad
}

// resourceUnit says how to simulate and print a resource.
type resourceUnit struct {
	name, label string
	divisor     float64
}

// drainedResources lists the resources whose requests must fit on the other nodes.
var drainedResources = []resourceUnit{{"cpu", "cores of CPU", 1}, {"memory", "GiB of memory", 1 << 30}}

// Capacity simulates draining the fullest nodes of a pool and returns a finding for each resource that the
// pool's other nodes lack. It only compares sums and the largest pod, so affinities, taints, and volumes may
// still leave pods pending.
func Capacity(pool PoolLoad) []Finding {
	in, id := scope{ScopeWorkerPool, []Resource{poolResource(pool.Pool)}}, NewUID("capacity", pool.Pool)
	var unknown []string
	for _, node := range pool.Nodes {
		for _, resource := range drainedResources {
			if load, known := node.Loads[resource.name]; !known || load.Allocatable <= 0 {
				unknown = append(unknown, node.Node)
			}
		}
	}
	if len(unknown) > 0 {
		f := in.finding(LevelWarning, TypeClusterCapacity, "CapacityUnknown", "the capacity of a machine config pool is unknown")
		f.ID = NewUID("unreadable", id)
		f.Description = "what pods request is not known of nodes " + text.JoinNames(unknown)
		f.Remedy = "Check that Prometheus has the metrics of kube-state-metrics for these nodes."
		return []Finding{f}
	}
	for _, resource := range drainedResources {
		if problem := simulateDrain(pool, resource); problem != "" {
			f := in.finding(LevelWarning, TypeClusterCapacity, "CapacityTooLow", "machine config pools without room for the pods of a drained node")
			f.ID, f.Description = id, problem
			f.Remedy = "Add a node to the pool, or reduce the requests of its pods, before the update."
			return []Finding{f}
		}
	}
	return nil
}

// simulateDrain explains why the pods of the drained nodes do not fit on the others. It returns "" if they
// fit.
func simulateDrain(pool PoolLoad, resource resourceUnit) string {
	nodes := slices.Clone(pool.Nodes)
	slices.SortStableFunc(nodes, func(a, b NodeLoad) int {
		return cmp.Or(-cmp.Compare(a.Loads[resource.name].Movable, b.Loads[resource.name].Movable), cmp.Compare(a.Node, b.Node))
	})
	drained := nodes[:min(max(pool.Unavailable, 1), len(nodes))]
	var names []string
	var moved, largest, free, roomiest float64
	for _, node := range drained {
		load := node.Loads[resource.name]
		names, moved, largest = append(names, node.Node), moved+load.Movable, max(largest, load.LargestPod)
	}
	for _, node := range nodes[len(drained):] {
		if node.Schedulable {
			room := node.Loads[resource.name].free()
			free, roomiest = free+room, max(roomiest, room)
		}
	}
	switch {
	case moved <= 0:
		return ""
	case moved > free:
		return fmt.Sprintf("a drain of %s moves pods that request %.1f %s, and the other nodes have %.1f free",
			text.JoinNames(names), moved/resource.divisor, resource.label, free/resource.divisor)
	case largest > roomiest:
		return fmt.Sprintf("a drain of %s moves a pod that requests %.1f %s, and no other node has more than %.1f free",
			text.JoinNames(names), largest/resource.divisor, resource.label, roomiest/resource.divisor)
	}
	return ""
}

// Sample is one sample in the result of a PromQL expression.
type Sample struct {
	Labels map[string]string
	Value  float64
}
