// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"fmt"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Bounds of texts, in bytes: a message has room for three pools.
const (
	longestPool   = 640 // what is said of a pool and its nodes
	longestReason = 160 // what a pool or a node says of itself
)

// describe says of each kind of pool, the worst first, how far it is, and
// which of its nodes hold it up.
func describe(waiting []trouble) string {
	var groups []string
	for _, kind := range []kind{degraded, paused, updating} {
		var pools []string
		for _, t := range waiting {
			if t.kind == kind {
				pools = append(pools, cluster.Because(t.pool.Name, engine.Clip(t.progress(), longestPool)))
			}
		}
		if len(pools) > 0 {
			groups = append(groups, fmt.Sprintf("machine config pools %s: %s", kind, cluster.Names(pools)))
		}
	}
	return strings.Join(groups, "; ")
}

func (t trouble) progress() string {
	parts := []string{fmt.Sprintf("%d of %d machines", t.pool.UpdatedMachines, t.pool.Machines)}
	if t.kind == degraded {
		parts = append(parts, said(t.pool.Degraded.Text()))
	}
	if !t.pool.Observed {
		parts = append(parts, "the machine config operator has not looked at it yet")
	}
	return strings.Join(append(parts, holdups(t.nodes)...), "; ")
}

// holdups are the nodes for which the pool waits, the worst first, each once. A
// node that is not ready or cordoned by somebody counts among those that may be
// away at a time, so the others may wait for it.
func holdups(nodes []cluster.Node) []string {
	var broken, down, byHand, drained, atWork []string
	for _, node := range nodes {
		switch {
		case node.Degraded():
			broken = append(broken, cluster.Because(node.Name, said(node.Reason)))
		case !node.Ready:
			down = append(down, cluster.Because(node.Name, cluster.Since(node.ReadySince)))
		case node.CordonedByHand():
			byHand = append(byHand, cluster.Because(node.Name, cluster.Since(node.CordonedSince)))
		case node.Draining:
			drained = append(drained, cluster.Because(node.Name, cluster.Since(node.CordonedSince)))
		case node.Updating:
			atWork = append(atWork, cluster.Because(node.Name, strings.Trim(said(node.State)+": "+said(node.Reason), ": ")))
		}
	}
	var groups []string
	for _, group := range []struct {
		what  string
		nodes []string
	}{
		{"degraded", broken}, {"not ready", down}, {"cordoned by hand", byHand}, {"being drained", drained}, {"being updated", atWork},
	} {
		if len(group.nodes) > 0 {
			groups = append(groups, fmt.Sprintf("nodes %s: %s", group.what, cluster.Names(group.nodes)))
		}
	}
	return groups
}

func said(text string) string { return engine.Clip(text, longestReason) }
