// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"slices"
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
	nodes, err := clusterstate.ListNodes(ctx, in.Reader)
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(n clusterstate.Node) bool { return text.MatchesAny(n.Name, in.Options.ExcludeNodes) })
	var found nodeFindings
	for _, node := range nodes {
		if !node.Ready {
			found.add(nodes, node, Finding{Reason: "NodeNotReady", Summary: "nodes not ready", Since: node.ReadySince})
		}
	}
	for _, node := range nodes {
		if !node.CordonedByHand() {
			continue
		}
		deleting, deletingErr := in.isBeingDeleted(ctx, node)
		switch {
		case deletingErr != nil:
			err = fmt.Errorf("determining why node %s is cordoned: %w", node.Name, deletingErr)
		case !deleting:
			found.add(nodes, node, Finding{Reason: "NodeCordoned", Summary: "nodes cordoned by hand", Since: node.CordonedSince, Remedy: "Uncordon the node."})
		}
	}
	for _, node := range nodes {
		if len(node.Pressure) > 0 {
			found.add(nodes, node, Finding{Reason: "NodePressure", Summary: "nodes under pressure", Description: strings.Join(node.Pressure, " and ")})
		}
	}
	return found.all, err
}

// nodeFindings collects findings about nodes. There may be thousands, so their resources share memory.
type nodeFindings struct {
	all       []Finding
	resources []Resource
}

func (n *nodeFindings) add(nodes []clusterstate.Node, node clusterstate.Node, f Finding) {
	if len(n.resources) == cap(n.resources) { // what is full stays in use
		n.resources = make([]Resource, 0, len(nodes))
	}
	n.resources = append(n.resources, Resource{Kind: "Node", Name: node.Name})
	last := len(n.resources)
	f.Scope, f.Level, f.Type, f.Resources = ScopeWorkerPool, LevelError, TypeClusterCapacity, n.resources[last-1:last:last]
	n.all = append(n.all, f)
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
