// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// The latest change reported by an object counts unless it is in the future. A first observation does not
// count as a change.
func TestProgress_observes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	awaited := func(message string, since time.Time) clusterstate.Awaited {
		operator := clusterstate.ClusterOperator{Name: "dns", Version: "4.20.5", Progressing: clusterstate.Condition{Status: "True", Message: message, Since: since}}
		return clusterstate.AwaitedOperators(clusterstate.Version{}, []clusterstate.ClusterOperator{operator}, func(clusterstate.ClusterOperator) bool { return false })
	}
	before := clusterstate.Progress{}.Observe(awaited("a", now.Add(-time.Hour)), now)
	if !before.Changed.Equal(now.Add(-time.Hour)) || before.Fingerprint == "" {
		t.Fatalf("at first: %+v", before)
	}
	for name, tc := range map[string]struct {
		awaited clusterstate.Awaited
		want    time.Time
	}{
		"nothing new":          {awaited("a", now.Add(-time.Hour)), now.Add(-time.Hour)},
		"an earlier time":      {awaited("a", now.Add(-2*time.Hour)), now.Add(-time.Hour)},
		"a later time":         {awaited("a", now.Add(-time.Minute)), now.Add(-time.Minute)},
		"a time in the future": {awaited("a", now.Add(time.Hour)), now.Add(-time.Hour)},
		"another message":      {awaited("b", now.Add(-time.Hour)), now},
		"nothing is seen":      {clusterstate.Awaited{}, now.Add(-time.Hour)},
	} {
		if got := before.Observe(tc.awaited, now).Changed; !got.Equal(tc.want) {
			t.Errorf("%s: changed at %s, want %s", name, got, tc.want)
		}
	}
}

// A change is a pod that leaves a draining node or a new step of a node, but not a node that completes.
// Unread pods do not count as a change.
func TestProgress_of_a_pool(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	observe := func(before clusterstate.Progress, after time.Duration, state string, pods ...string) clusterstate.Progress {
		done, waiting := newNode("a", "worker", "new", "Done"), newNode("b", "worker", "old", state)
		pool := newPool("worker")
		progress := clusterstate.PoolProgress{Pool: pool, Nodes: []clusterstate.NodeProgress{{Node: &done}, {Node: &waiting, Outdated: true}}}
		var awaited clusterstate.Awaited
		awaited.AddPool(&progress, func(node clusterstate.Node) []clusterstate.DrainedPod {
			if node.Name != "b" {
				t.Errorf("the pods on node %s are listed", node.Name)
			}
			var left []clusterstate.DrainedPod
			for _, name := range pods {
				left = append(left, clusterstate.DrainedPod{Pod: clusterstate.Pod{Namespace: "shop", Name: name}})
			}
			return left
		})
		return before.Observe(awaited, now.Add(after))
	}
	first := observe(clusterstate.Progress{}, 0, "Done", "api-0", "api-1")
	for name, tc := range map[string]struct {
		after   clusterstate.Progress
		changed bool
	}{
		"nothing":        {observe(first, time.Hour, "Done", "api-0", "api-1"), false},
		"a pod has left": {observe(first, time.Hour, "Done", "api-1"), true},
		"pods not read":  {observe(first, time.Hour, "Done"), false},
		"another state":  {observe(first, time.Hour, "Working", "api-0", "api-1"), true},
	} {
		if got := !tc.after.Changed.Equal(first.Changed); got != tc.changed {
			t.Errorf("%s: changed: %t, at %s", name, got, tc.after.Changed)
		}
	}
}
