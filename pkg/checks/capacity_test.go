// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// loaded returns a schedulable node with 4 cores and 16 GiB whose pods have the given requests, in cores.
func loaded(name string, requested, movable, largest float64) checks.NodeLoad {
	return checks.NodeLoad{Node: name, Schedulable: true, Loads: map[string]checks.Load{
		"cpu":    {Allocatable: 4, Requested: requested, Movable: movable, LargestPod: largest},
		"memory": {Allocatable: 16 << 30, Requested: 1 << 30, Movable: 1 << 30, LargestPod: 1 << 30},
	}}
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	cordoned := loaded("c", 0, 0, 0)
	cordoned.Schedulable = false
	unknown := loaded("b", 1, 1, 1)
	delete(unknown.Loads, "memory")
	starved := loaded("b", 1, 1, 1)
	starved.Loads["memory"] = checks.Load{Allocatable: 16 << 30, Requested: 15 << 30, Movable: 15 << 30, LargestPod: 3 << 30}
	for name, tc := range map[string]struct {
		unavailable int
		nodes       []checks.NodeLoad
		reason      string
		description string
	}{
		"pods fit": {1, []checks.NodeLoad{loaded("a", 2, 2, 1), loaded("b", 1, 1, 1)}, "", ""},
		"sum does not fit": {
			1,
			[]checks.NodeLoad{loaded("a", 3, 2.5, 1), loaded("b", 2, 2, 1)},
			"CapacityTooLow",
			"a drain of a moves pods that request 2.5 cores of CPU, and the other nodes have 2.0 free",
		},
		"largest pod does not fit": {
			1,
			[]checks.NodeLoad{loaded("a", 3, 3, 3), loaded("b", 2, 2, 1), loaded("c", 2, 2, 1)},
			"CapacityTooLow",
			"a drain of a moves a pod that requests 3.0 cores of CPU, and no other node has more than 2.0 free",
		},
		"two nodes at a time do not fit": {
			2,
			[]checks.NodeLoad{loaded("a", 2, 2, 1), loaded("b", 2, 2, 1), loaded("c", 1, 1, 1)},
			"CapacityTooLow",
			"a drain of a, b moves pods that request 4.0 cores of CPU, and the other nodes have 3.0 free",
		},
		"cordoned node has no room": {
			1,
			[]checks.NodeLoad{loaded("a", 2, 2, 1), cordoned},
			"CapacityTooLow",
			"a drain of a moves pods that request 2.0 cores of CPU, and the other nodes have 0.0 free",
		},
		"single node": {
			1,
			[]checks.NodeLoad{loaded("a", 2, 1, 1)},
			"CapacityTooLow",
			"a drain of a moves pods that request 1.0 cores of CPU, and the other nodes have 0.0 free",
		},
		"memory does not fit": {
			1,
			[]checks.NodeLoad{loaded("a", 1, 1, 1), starved, loaded("c", 4, 1, 1)},
			"",
			"",
		},
		"memory of the largest pods": {
			2,
			[]checks.NodeLoad{loaded("a", 1, 1, 1), starved, loaded("c", 1, 1, 1)},
			"CapacityTooLow",
			"a drain of a, b moves pods that request 16.0 GiB of memory, and the other nodes have 15.0 free",
		},
		"all nodes at a time":        {9, []checks.NodeLoad{loaded("a", 0, 0, 0), loaded("b", 0, 0, 0)}, "CapacityTooLow", "a drain of a, b moves pods that request 2.0 GiB of memory, and the other nodes have 0.0 free"},
		"pool without nodes":         {1, nil, "", ""},
		"node with unknown requests": {1, []checks.NodeLoad{loaded("a", 0, 0, 0), unknown}, "CapacityUnknown", "what pods request is not known of nodes b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := checks.Capacity(checks.PoolLoad{Pool: "worker", Unavailable: tc.unavailable, Nodes: tc.nodes})
			if tc.reason == "" {
				if len(found) != 0 {
					t.Fatalf("found %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Reason != tc.reason || found[0].Description != tc.description || found[0].Level != checks.LevelWarning {
				t.Errorf("found %+v, want %s: %s", found, tc.reason, tc.description)
			}
		})
	}
}
