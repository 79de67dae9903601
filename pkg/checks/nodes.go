// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
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
	var notReady, cordoned, pressed []Finding
	for _, node := range nodes {
		if text.MatchesAny(node.Name, in.Options.ExcludeNodes) {
			continue
		}
		if !node.Ready {
			f := nodeFinding("NodeNotReady", "nodes not ready", node)
			f.Since = node.ReadySince
			notReady = append(notReady, f)
		}
		if node.CordonedByHand() {
			deleting, deletingErr := in.isBeingDeleted(ctx, node)
			if deletingErr != nil {
				err = fmt.Errorf("determining why node %s is cordoned: %w", node.Name, deletingErr)
			} else if !deleting {
				f := nodeFinding("NodeCordoned", "nodes cordoned by hand", node)
				f.Since, f.Remedy = node.CordonedSince, "Uncordon the node: oc adm uncordon "+node.Name
				cordoned = append(cordoned, f)
			}
		}
		if len(node.Pressure) > 0 {
			f := nodeFinding("NodePressure", "nodes under pressure", node)
			f.Description = strings.Join(node.Pressure, " and ")
			pressed = append(pressed, f)
		}
	}
	return append(append(notReady, cordoned...), pressed...), err
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

func nodeFinding(reason, summary string, node clusterstate.Node) Finding {
	f := newFinding(reason, summary, Resource{Kind: "Node", Name: node.Name})
	f.Scope, f.Type = ScopeWorkerPool, TypeClusterCapacity
	return f
}
