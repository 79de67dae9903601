// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// nodeTroubles are the nodes that are not ready, cordoned by hand, or short of something.
func nodeTroubles(nodes []cluster.Node) []string {
	var notReady, cordoned, pressed []string
	for _, node := range nodes {
		if !node.Ready {
			notReady = append(notReady, cluster.Because(node.Name, cluster.Since(node.ReadySince)))
		}
		if node.CordonedByHand() {
			cordoned = append(cordoned, cluster.Because(node.Name, cluster.Since(node.CordonedSince)))
		}
		if len(node.Pressure) > 0 {
			pressed = append(pressed, cluster.Because(node.Name, strings.Join(node.Pressure, " and ")))
		}
	}
	found := group("nodes not ready", notReady)
	found = append(found, group("nodes cordoned by hand", cordoned)...)
	return append(found, group("nodes under pressure", pressed)...)
}
