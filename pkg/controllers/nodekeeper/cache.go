// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// nodeCache holds the state of nodes that are being drained. It can be lost at any time: nodes are
// then reconciled once more, and notifications are published again under the same name.
type nodeCache struct {
	mu    sync.Mutex
	nodes map[string]*nodeState // by name
}

// nodeState is the state of one node.
type nodeState struct {
	drain     string                      // the UID of the node and the requested drain
	seen      time.Time                   // when this process first saw the drain
	deadlines clusterstate.DrainDeadlines // of the last pass
	next      time.Time                   // when the next pass is due if the deadlines do not change
	notified  map[string]bool             // UIDs of objects with published Events
	refusals  map[types.UID]string        // errors of refused evictions, by pod
}

// firstSeen returns when this process first saw this drain of the node. It records now on the first
// call.
func (c *nodeCache) firstSeen(node, drain string, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.getOrCreate(node)
	if state.drain != drain || state.seen.IsZero() || state.seen.After(now) {
		state.drain, state.seen = drain, now
	}
	return state.seen
}

// nextPass returns when the next pass over a node is due; zero if no pass had these deadlines.
func (c *nodeCache) nextPass(node string, d clusterstate.DrainDeadlines) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.nodes[node]
	if state == nil || !state.deadlines.Equal(d) {
		return time.Time{}
	}
	return state.next
}

// recordPass stores the result of a pass over a node.
func (c *nodeCache) recordPass(node string, d clusterstate.DrainDeadlines, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.getOrCreate(node)
	state.deadlines, state.next = d, next
}

// recordNotified records that an Event about an object was published because of a node.
func (c *nodeCache) recordNotified(node, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.getOrCreate(node).notified[uid] = true
}

// setRefusals stores the pods on a node whose evictions were refused in the last pass.
func (c *nodeCache) setRefusals(node string, refusals map[types.UID]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.getOrCreate(node).refusals = refusals
}

// refusals returns the pods on a node whose evictions were refused in the last pass, with the
// errors.
func (c *nodeCache) refusals(node string) map[types.UID]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.getOrCreate(node).refusals
}

// delete removes the state of a node. It returns the UIDs of objects with Events that were
// published because of the node.
func (c *nodeCache) delete(node string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.nodes[node]
	delete(c.nodes, node)
	if state == nil {
		return nil
	}
	return state.notified
}

func (c *nodeCache) getOrCreate(node string) *nodeState {
	if c.nodes == nil {
		c.nodes = map[string]*nodeState{}
	}
	if c.nodes[node] == nil {
		c.nodes[node] = &nodeState{notified: map[string]bool{}}
	}
	return c.nodes[node]
}
