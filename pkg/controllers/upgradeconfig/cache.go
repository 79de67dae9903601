// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache is what is remembered of each UpgradeConfig for as long as the process lives.
type cache[T any] struct {
	mu      sync.Mutex
	entries map[client.ObjectKey]T
}

// get is what is remembered of one; zero if nothing is.
func (c *cache[T]) get(key client.ObjectKey) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[key]
}

func (c *cache[T]) set(key client.ObjectKey, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[client.ObjectKey]T{}
	}
	c.entries[key] = value
}

func (c *cache[T]) delete(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
