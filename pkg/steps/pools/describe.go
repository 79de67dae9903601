// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxPoolText limits the description of a pool and its nodes, in bytes. A message has room for
	// three pools.
	maxPoolText = 640
	// maxPools is the maximum number of pools described for each state.
	maxPools = 3
	// maxExplained is the maximum number of drains explained in one pass.
	maxExplained = 9
)

// detail is the level of detail in the description of a pool.
type detail struct {
	nodes        int // number of named nodes for each state
	reason       int // bytes of text from the pool or a node
	explanations int // of drains
}

// details lists the levels to try until the description of a pool is short enough. What holds up a
// drain is dropped last.
var details = []detail{
	{nodes: 3, reason: 160, explanations: maxExplained},
	{nodes: 3, reason: 80, explanations: maxExplained},
	{nodes: 3, reason: 32, explanations: maxExplained},
	{nodes: 2, reason: 32, explanations: maxExplained},
	{nodes: 1, reason: 32, explanations: maxExplained},
	{nodes: 1, reason: 32, explanations: 1},
}

// describer describes pools. It explains what holds up the drains of the nodes that it names.
type describer struct {
	now     time.Time
	explain func(clusterstate.Node) string
	isLong  func(clusterstate.Node) bool // reports whether a drain is explained

	explained map[string]string // explanations by node
}

// describe returns the progress and the blocking nodes for each state of pools, the most severe
// state first.
func (d *describer) describe(pending []*clusterstate.PoolProgress) string {
	var groups []string
	for _, state := range []clusterstate.PoolState{clusterstate.PoolDegraded, clusterstate.PoolPaused, clusterstate.PoolUpdating} {
		var pools []string
		total := 0
		for _, p := range pending {
			if p.State() != state {
				continue
			}
			if total++; total <= maxPools {
				pools = append(pools, text.WithReason(p.Pool.Name, d.progress(p)))
			}
		}
		if total > 0 {
			groups = append(groups, fmt.Sprintf("machine config pools %s: %s", state, joinFirst(pools, total)))
		}
	}
	return strings.Join(groups, "; ")
}

// joinFirst joins names, and appends how many more there are.
func joinFirst(names []string, total int) string {
	joined := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", joined, more)
	}
	return joined
}

// progress returns the progress and the blocking nodes of the pool, in as much detail as fits.
func (d *describer) progress(p *clusterstate.PoolProgress) string {
	groups := d.groupNodes(p.Nodes)
	var progress string
	for _, detail := range details {
		if progress = d.progressIn(detail, p, groups); len(progress) <= maxPoolText {
			return progress
		}
	}
	return text.Truncate(progress, maxPoolText)
}

func (d *describer) progressIn(detail detail, p *clusterstate.PoolProgress, groups []nodeGroup) string {
	parts := []string{fmt.Sprintf("%d of %d machines", p.Pool.UpdatedMachines, p.Pool.Machines)}
	if p.State() == clusterstate.PoolDegraded {
		parts = append(parts, text.Truncate(p.Pool.Degraded.MessageOrReason(), detail.reason))
	}
	if !p.Pool.Observed {
		parts = append(parts, "not observed by the machine config operator yet")
	}
	for _, group := range groups {
		var names []string
		for _, node := range group.nodes[:min(len(group.nodes), detail.nodes)] {
			names = append(names, text.WithReason(node.Name, group.reason(node, &detail)))
		}
		parts = append(parts, fmt.Sprintf("nodes %s: %s", group.state, joinFirst(names, len(group.nodes))))
	}
	return strings.Join(parts, "; ")
}

// nodeGroup holds the nodes that block a pool for the same reason. The nodes with the longest
// drains come first. The others are sorted by name.
type nodeGroup struct {
	state  clusterstate.NodeState
	reason func(clusterstate.Node, *detail) string
	nodes  []clusterstate.Node
}

// groupNodes returns the nodes that the pool waits for, the most severe first, without duplicates.
func (d *describer) groupNodes(nodes []clusterstate.NodeProgress) []nodeGroup {
	reasons := map[clusterstate.NodeState]func(clusterstate.Node, *detail) string{
		clusterstate.NodeStateDegraded: d.whyDegraded, clusterstate.NodeStateNotReady: d.whyNotReady,
		clusterstate.NodeStateBeingDeleted: sinceCordon, clusterstate.NodeStateCordoned: sinceCordon,
		clusterstate.NodeStateDraining: d.whyDraining, clusterstate.NodeStateUpdating: updateState,
	}
	byState := map[clusterstate.NodeState][]clusterstate.Node{}
	for i := range nodes {
		byState[nodes[i].State] = append(byState[nodes[i].State], *nodes[i].Node)
	}
	var groups []nodeGroup
	for _, state := range clusterstate.NodeStates() {
		if blocking := byState[state]; len(blocking) > 0 {
			slices.SortStableFunc(blocking, d.compareDrains)
			groups = append(groups, nodeGroup{state: state, reason: reasons[state], nodes: blocking})
		}
	}
	return groups
}

// compareDrains sorts nodes with long drains first, the longest at the front.
func (d *describer) compareDrains(a, b clusterstate.Node) int {
	switch longA, longB := d.isLong(a), d.isLong(b); {
	case longA && longB:
		return a.Drain.Start(time.Time{}, d.now).Compare(b.Drain.Start(time.Time{}, d.now))
	case longA:
		return -1
	case longB:
		return 1
	}
	return 0
}

func (d *describer) whyDegraded(node clusterstate.Node, detail *detail) string {
	return joinReasons(d.drain(node, detail, "draining "), text.Truncate(text.Reason(node.Reason), detail.reason))
}

func (d *describer) whyNotReady(node clusterstate.Node, detail *detail) string {
	return joinReasons(text.FormatSince(node.ReadySince), d.drain(node, detail, "draining "))
}

func (d *describer) whyDraining(node clusterstate.Node, detail *detail) string {
	return cmp.Or(d.drain(node, detail, ""), text.FormatSince(node.CordonedSince))
}

func sinceCordon(node clusterstate.Node, _ *detail) string {
	return text.FormatSince(node.CordonedSince)
}

func updateState(node clusterstate.Node, detail *detail) string {
	state, reason := text.Truncate(node.State, detail.reason), text.Truncate(node.Reason, detail.reason)
	return strings.Trim(state+": "+reason, ": ")
}

// drain returns how long a node has been draining and what holds that up; empty if there is nothing
// to explain or no room.
func (d *describer) drain(node clusterstate.Node, detail *detail, prefix string) string {
	if detail.explanations == 0 || !d.isLong(node) {
		return ""
	}
	explanation := d.explanation(node)
	if explanation == "" {
		return ""
	}
	detail.explanations--
	return joinReasons(strings.TrimSpace(prefix+text.FormatSince(node.Drain.Start(time.Time{}, d.now))), explanation)
}

// explanation returns what holds up the drain of a node. It is computed once in a pass, and only
// for a few nodes.
func (d *describer) explanation(node clusterstate.Node) string {
	if explanation, known := d.explained[node.Name]; known || len(d.explained) == maxExplained {
		return explanation
	}
	if d.explained == nil {
		d.explained = map[string]string{}
	}
	d.explained[node.Name] = d.explain(node)
	return d.explained[node.Name]
}

func joinReasons(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}
