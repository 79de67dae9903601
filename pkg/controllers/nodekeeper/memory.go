// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"sync"
	"time"
)

// memory is what is remembered of the nodes that are being drained. All of it
// may be lost: then nodes are looked at once more, and what was told is told
// again under the same name.
type memory struct {
	mu    sync.Mutex
	nodes map[string]*visits // by name
}

// visits are the looks at one node.
type visits struct {
	terms deadlines       // of the last look
	next  time.Time       // when the next one is due, unless the terms change
	told  map[string]bool // the uids of whom something was told about
}

// next is when the next look at a node is due, zero if none was taken on these terms.
func (m *memory) next(node string, terms deadlines) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.nodes[node]
	if v == nil || !v.terms.equal(terms) {
		return time.Time{}
	}
	return v.next
}

// looked notes a look at a node.
func (m *memory) looked(node string, terms deadlines, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.of(node)
	v.terms, v.next = terms, next
}

// told notes that something was told about an object on account of a node.
func (m *memory) told(node, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(node).told[uid] = true
}

// forget drops a node, and returns whom something was told about on its account.
func (m *memory) forget(node string) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.nodes[node]
	delete(m.nodes, node)
	if v == nil {
		return nil
	}
	return v.told
}

func (m *memory) of(node string) *visits {
	if m.nodes == nil {
		m.nodes = map[string]*visits{}
	}
	if m.nodes[node] == nil {
		m.nodes[node] = &visits{told: map[string]bool{}}
	}
	return m.nodes[node]
}
