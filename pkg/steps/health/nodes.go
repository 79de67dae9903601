// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// checkNodes are the nodes that are not ready, cordoned by hand, or short of something.
func checkNodes(nodes []clusterstate.Node) []string {
	var notReady, cordoned, pressed []string
	for _, node := range nodes {
		if !node.Ready {
			notReady = append(notReady, text.WithReason(node.Name, text.FormatSince(node.ReadySince)))
		}
		if node.CordonedByHand() {
			cordoned = append(cordoned, text.WithReason(node.Name, text.FormatSince(node.CordonedSince)))
		}
		if len(node.Pressure) > 0 {
			pressed = append(pressed, text.WithReason(node.Name, strings.Join(node.Pressure, " and ")))
		}
	}
	found := formatGroup("nodes not ready", notReady)
	found = append(found, formatGroup("nodes cordoned by hand", cordoned)...)
	return append(found, formatGroup("nodes under pressure", pressed)...)
}
