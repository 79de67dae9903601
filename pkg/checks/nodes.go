// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func findNodes(in Facts, phase RulePhase) []Finding {
	if phase == Update {
		return findUpdateNodes(in)
	}
	var notReady, cordoned, pressed []Finding
	for i := range in.Nodes {
		node := &in.Nodes[i]
		if text.MatchesAny(node.Name, in.Options.ExcludeNodes) {
			continue
		}
		f := poolScope("").finding(LevelError, TypeClusterCapacity, "NodeNotReady", "nodes not ready", nodeResource(node.Name))
		if !node.Ready {
			f.Since = node.ReadySince
			notReady = append(notReady, f)
		}
		if node.CordonedByHand() && (node.Machine == "" || in.Has(SourceMachines) && !in.DeletingMachines[node.Machine]) {
			f.Reason, f.Summary, f.Since, f.Remedy = "NodeCordoned", "nodes cordoned by hand", node.CordonedSince, "Uncordon the node."
			cordoned = append(cordoned, f)
		}
		if len(node.Pressure) > 0 {
			f.Reason, f.Summary, f.Since, f.Remedy = "NodePressure", "nodes under pressure", time.Time{}, ""
			f.Description = strings.Join(node.Pressure, " and ")
			pressed = append(pressed, f)
		}
	}
	return slices.Concat(notReady, cordoned, pressed)
}
