// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"sync"
	"time"
)

// nodeCache is what is remembered of the nodes that are being drained. All of it
// may be lost: then nodes are looked at once more, and what was told is told
// again under the same name.
type nodeCache struct {
	mu    sync.Mutex
	nodes map[string]*nodeState // by name
}

// nodeState are the looks at one node.
type nodeState struct {
	deadlines deadlines       // of the last look
	next      time.Time       // when the next one is due, unless the terms change
	notified  map[string]bool // the uids of whom something was told about
}

// nextPass is when the next look at a node is due, zero if none was taken on these terms.
func (c *nodeCache) nextPass(node string, d deadlines) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.nodes[node]
	if state == nil || !state.deadlines.equal(d) {
		return time.Time{}
	}
	return state.next
}

// recordPass notes a look at a node.
func (c *nodeCache) recordPass(node string, d deadlines, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.getOrCreate(node)
	state.deadlines, state.next = d, next
}

// recordNotified notes that something was told about an object on account of a node.
func (c *nodeCache) recordNotified(node, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.getOrCreate(node).notified[uid] = true
}

// delete drops a node, and returns whom something was told about on its account.
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
