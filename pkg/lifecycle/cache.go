// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache holds a value per object for as long as the process lives.
type cache[V any] struct {
	mu      sync.Mutex
	entries map[client.ObjectKey]V
}

// get returns the value of an object; the zero value if there is none.
func (c *cache[V]) get(key client.ObjectKey) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key]
}

func (c *cache[V]) set(key client.ObjectKey, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[client.ObjectKey]V{}
	}
	c.entries[key] = value
}

func (c *cache[V]) delete(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
