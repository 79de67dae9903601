// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Bounds of texts, in bytes: a message has room for three pools.
const (
	maxPoolText   = 640 // the description of a pool and its nodes
	maxReasonText = 160 // what a pool or a node reports
)

// maxExplained is the number of drains that are explained in one pass. A message names three nodes of
// a kind.
const maxExplained = 9

// describer describes pools. It explains what holds the drain of a node.
type describer struct {
	now       time.Time
	explain   func(clusterstate.Node) string
	explained int
}

// drain returns since when a node is being drained, and what holds that; empty if there is nothing to
// explain.
func (d *describer) drain(node clusterstate.Node, prefix string) string {
	if !node.Drain.Active || d.explained == maxExplained {
		return ""
	}
	explanation := d.explain(node)
	if explanation == "" {
		return ""
	}
	d.explained++
	return joinDetails(strings.TrimSpace(prefix+text.FormatSince(node.Drain.Start(time.Time{}, d.now))), explanation)
}

func joinDetails(details ...string) string {
	return strings.Join(slices.DeleteFunc(details, func(s string) bool { return s == "" }), "; ")
}

// describe returns, for each state of pools, the most severe first, how far they are and which nodes
// block them.
func (d *describer) describe(pending []checks.PendingPool) string {
	var groups []string
	for _, state := range []checks.PoolState{checks.PoolDegraded, checks.PoolPaused, checks.PoolUpdating} {
		var pools []string
		for _, p := range pending {
			if p.State == state {
				pools = append(pools, text.WithReason(p.Pool.Name, text.Truncate(d.progress(p), maxPoolText)))
			}
		}
		if len(pools) > 0 {
			groups = append(groups, fmt.Sprintf("machine config pools %s: %s", state, text.JoinNames(pools)))
		}
	}
	return strings.Join(groups, "; ")
}

func (d *describer) progress(p checks.PendingPool) string {
	parts := []string{fmt.Sprintf("%d of %d machines", p.Pool.UpdatedMachines, p.Pool.Machines)}
	if p.State == checks.PoolDegraded {
		parts = append(parts, truncate(p.Pool.Degraded.MessageOrReason()))
	}
	if !p.Pool.Observed {
		parts = append(parts, "not observed by the machine config operator yet")
	}
	return strings.Join(append(parts, d.blockingNodes(p.Nodes)...), "; ")
}

// blockingNodes returns the nodes for which the pool waits, the most severe first, each once. A node
// that is not ready or cordoned counts among those that may be unavailable at a time, so other nodes
// may wait for it.
func (d *describer) blockingNodes(nodes []clusterstate.Node) []string {
	var degraded, notReady, deleting, cordoned, draining, updating []string
	for _, node := range nodes {
		switch {
		case node.Degraded():
			degraded = append(degraded, text.WithReason(node.Name, joinDetails(d.drain(node, "draining "), truncate(text.Reason(node.Reason)))))
		case !node.Ready:
			notReady = append(notReady, text.WithReason(node.Name, joinDetails(text.FormatSince(node.ReadySince), d.drain(node, "draining "))))
		case node.Cordoned && node.BeingDeleted:
			deleting = append(deleting, text.WithReason(node.Name, text.FormatSince(node.CordonedSince)))
		case node.CordonedByHand():
			cordoned = append(cordoned, text.WithReason(node.Name, text.FormatSince(node.CordonedSince)))
		case node.Drain.Active:
			details := text.FormatSince(node.CordonedSince)
			if explanation := d.drain(node, ""); explanation != "" {
				details = explanation
			}
			draining = append(draining, text.WithReason(node.Name, details))
		case node.Updating:
			updating = append(updating, text.WithReason(node.Name, strings.Trim(truncate(node.State)+": "+truncate(node.Reason), ": ")))
		}
	}
	var groups []string
	for _, group := range []struct {
		state string
		nodes []string
	}{
		{"degraded", degraded},
		{"not ready", notReady},
		{"being deleted by the cluster autoscaler", deleting},
		{"cordoned", cordoned},
		{"being drained", draining},
		{"being updated", updating},
	} {
		if len(group.nodes) > 0 {
			groups = append(groups, fmt.Sprintf("nodes %s: %s", group.state, text.JoinNames(group.nodes)))
		}
	}
	return groups
}

func truncate(reported string) string { return text.Truncate(reported, maxReasonText) }
