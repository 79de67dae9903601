// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"math/bits"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var nodesCheck = Check{
	Name:      "nodes",
	Doc:       "Nodes are not ready, cordoned by hand, or under pressure.",
	Reads:     []client.Object{&corev1.Node{}},
	ReadsLive: []client.Object{&machinev1beta1.Machine{}},
	Find:      findNodes,
}

func findNodes(ctx context.Context, in Input) ([]Finding, error) {
	nodes, err := clusterstate.GetNodes(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	return Nodes(nodes, in.Options, func(node clusterstate.Node) (bool, error) { return in.isBeingDeleted(ctx, node) })
}

// Nodes returns the nodes that are not ready, cordoned by hand, or under pressure. The function reports
// whether the Machine of a cordoned node is being deleted; its errors are returned with the findings.
func Nodes(nodes clusterstate.Nodes, options Options, beingDeleted func(clusterstate.Node) (bool, error)) (found []Finding, err error) {
	wrong, count := make([]nodeTrouble, nodes.Len()), 0
	for i, node := range nodes.All() {
		if text.MatchesAny(node.Name, options.ExcludeNodes) {
			continue
		}
		trouble, nodeErr := troubleOf(node, beingDeleted)
		if nodeErr != nil {
			err = nodeErr
		}
		wrong[i] = trouble
		count += bits.OnesCount8(uint8(trouble))
	}
	collected := nodeFindings{nodes: nodes, wrong: wrong, all: make([]Finding, 0, count), resources: make([]Resource, 0, count)}
	collected.add(notReady, func(node clusterstate.Node) Finding {
		return Finding{Reason: "NodeNotReady", Summary: "nodes not ready", Since: node.ReadySince}
	})
	collected.add(cordonedByHand, func(node clusterstate.Node) Finding {
		return Finding{Reason: "NodeCordoned", Summary: "nodes cordoned by hand", Since: node.CordonedSince, Remedy: "Uncordon the node."}
	})
	collected.add(underPressure, func(node clusterstate.Node) Finding {
		return Finding{Reason: "NodePressure", Summary: "nodes under pressure", Description: strings.Join(node.Pressure, " and ")}
	})
	return collected.all, err
}

// nodeTrouble is what is wrong with a node: one bit each.
type nodeTrouble uint8

const (
	notReady nodeTrouble = 1 << iota
	cordonedByHand
	underPressure
)

func troubleOf(node clusterstate.Node, beingDeleted func(clusterstate.Node) (bool, error)) (nodeTrouble, error) {
	var trouble nodeTrouble
	if !node.Ready {
		trouble |= notReady
	}
	if len(node.Pressure) > 0 {
		trouble |= underPressure
	}
	if !node.CordonedByHand() {
		return trouble, nil
	}
	deleting, err := beingDeleted(node)
	switch {
	case err != nil:
		return trouble, fmt.Errorf("determining why node %s is cordoned: %w", node.Name, err)
	case !deleting:
		trouble |= cordonedByHand
	}
	return trouble, nil
}

// nodeFindings collects findings about nodes. There may be thousands, so their resources share
// memory.
type nodeFindings struct {
	nodes     clusterstate.Nodes
	wrong     []nodeTrouble // by index of the node
	all       []Finding
	resources []Resource
}

// add appends a finding for each node with the trouble.
func (n *nodeFindings) add(trouble nodeTrouble, finding func(clusterstate.Node) Finding) {
	for i := range n.wrong {
		if n.wrong[i]&trouble == 0 {
			continue
		}
		node, last := n.nodes.At(i), len(n.resources)
		n.resources = append(n.resources, Resource{Kind: "Node", Name: node.Name})
		f := finding(node)
		f.Scope, f.Level, f.Type, f.Resources = ScopeWorkerPool, LevelError, TypeClusterCapacity, n.resources[last:last+1:last+1]
		n.all = append(n.all, f)
	}
}

// isBeingDeleted reports whether the Machine of a cordoned node is being deleted. Without a Machine
// no request is made.
func (in Input) isBeingDeleted(ctx context.Context, node clusterstate.Node) (bool, error) {
	if node.Machine == "" || in.Live == nil {
		return false, nil
	}
	machines, err := in.Sources.deletingMachines(ctx, func(ctx context.Context) (map[string]bool, error) {
		return clusterstate.ListDeletingMachines(ctx, in.Live)
	})
	return machines[node.Machine], err
}
