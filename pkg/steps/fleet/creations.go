// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cacheTimeout is how long the cache may lack a work that was created.
const cacheTimeout = 5 * time.Second

// Creations remember which works a process has created. A pass that follows at once does not create a work
// again that the cache does not hold yet: the API server would answer as if the name were in use. It may be
// used by several goroutines.
type Creations struct {
	// Clock provides the time.
	Clock clock.PassiveClock

	mu sync.Mutex
	at map[client.ObjectKey]time.Time
}

// note remembers that a work was created. Nil remembers nothing.
func (c *Creations) note(work client.Object) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	for key, at := range c.at {
		if now.Sub(at) > cacheTimeout {
			delete(c.at, key)
		}
	}
	if c.at == nil {
		c.at = map[client.ObjectKey]time.Time{}
	}
	c.at[client.ObjectKeyFromObject(work)] = now
}

// arePending reports whether a work that the cache lacks was created a moment ago.
func (c *Creations) arePending(work client.Object) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.at[client.ObjectKeyFromObject(work)]
	return known && c.Clock.Now().Sub(at) <= cacheTimeout
}
