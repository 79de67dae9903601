// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Bounds of texts, in bytes: a message has room for three pools.
const (
	maxPoolText   = 640 // what is said of a pool and its nodes
	maxReasonText = 160 // what a pool or a node says of itself
)

// describe says of each kind of pool, the worst first, how far it is, and
// which of its nodes hold it up.
func describe(pending []poolStatus) string {
	var groups []string
	for _, state := range []poolState{degraded, paused, updating} {
		var pools []string
		for _, t := range pending {
			if t.state == state {
				pools = append(pools, text.WithReason(t.pool.Name, text.Truncate(t.progress(), maxPoolText)))
			}
		}
		if len(pools) > 0 {
			groups = append(groups, fmt.Sprintf("machine config pools %s: %s", state, text.JoinNames(pools)))
		}
	}
	return strings.Join(groups, "; ")
}

func (t poolStatus) progress() string {
	parts := []string{fmt.Sprintf("%d of %d machines", t.pool.UpdatedMachines, t.pool.Machines)}
	if t.state == degraded {
		parts = append(parts, truncate(t.pool.Degraded.MessageOrReason()))
	}
	if !t.pool.Observed {
		parts = append(parts, "the machine config operator has not looked at it yet")
	}
	return strings.Join(append(parts, blockingNodes(t.nodes)...), "; ")
}

// blockingNodes are the nodes for which the pool waits, the worst first, each once. A
// node that is not ready or cordoned by somebody counts among those that may be
// away at a time, so the others may wait for it.
func blockingNodes(nodes []clusterstate.Node) []string {
	var broken, down, byHand, draining, inProgress []string
	for _, node := range nodes {
		switch {
		case node.Degraded():
			broken = append(broken, text.WithReason(node.Name, truncate(node.Reason)))
		case !node.Ready:
			down = append(down, text.WithReason(node.Name, text.FormatSince(node.ReadySince)))
		case node.CordonedByHand():
			byHand = append(byHand, text.WithReason(node.Name, text.FormatSince(node.CordonedSince)))
		case node.Draining:
			draining = append(draining, text.WithReason(node.Name, text.FormatSince(node.CordonedSince)))
		case node.Updating:
			inProgress = append(inProgress, text.WithReason(node.Name, strings.Trim(truncate(node.State)+": "+truncate(node.Reason), ": ")))
		}
	}
	var groups []string
	for _, group := range []struct {
		what  string
		nodes []string
	}{
		{"degraded", broken}, {"not ready", down}, {"cordoned by hand", byHand}, {"being drained", draining}, {"being updated", inProgress},
	} {
		if len(group.nodes) > 0 {
			groups = append(groups, fmt.Sprintf("nodes %s: %s", group.what, text.JoinNames(group.nodes)))
		}
	}
	return groups
}

func truncate(reported string) string { return text.Truncate(reported, maxReasonText) }
