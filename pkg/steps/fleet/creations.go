// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
)

// cacheTimeout is how long the cache may lack a work that was created.
const cacheTimeout = 5 * time.Second

// Creations remember which works a process has created or changed. A pass that follows at once does not create
// a work again that the cache does not hold yet: the API server would answer as if the name were in use. Nor
// does it change a work again in the same way: another process has changed it since, and without a pause, the
// two would do so in turn. It may be used by several goroutines.
type Creations struct {
	// Clock provides the time.
	Clock clock.PassiveClock

	mu sync.Mutex
	at map[written]time.Time
}

// written is a work that was written.
type written struct {
	key      client.ObjectKey
	delivery string // what the work was changed to deliver; empty means that it was created
}

// noteCreation remembers that a work was created.
func (c *Creations) noteCreation(work client.Object) {
	c.note(written{key: client.ObjectKeyFromObject(work)})
}

// noteChange remembers that a work was changed.
func (c *Creations) noteChange(work client.Object) { c.note(changeOf(work)) }

func changeOf(work client.Object) written {
	return written{client.ObjectKeyFromObject(work), work.GetAnnotations()[delivery.Annotation]}
}

// note remembers a write. Nil remembers nothing.
func (c *Creations) note(w written) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Clock.Now()
	for other, at := range c.at {
		if now.Sub(at) > cacheTimeout {
			delete(c.at, other)
		}
	}
	if c.at == nil {
		c.at = map[written]time.Time{}
	}
	c.at[w] = now
}

// arePending reports whether a work that the cache lacks was created a moment ago.
func (c *Creations) arePending(work client.Object) bool {
	return c.wasWritten(written{key: client.ObjectKeyFromObject(work)}, cacheTimeout)
}

// wasJustChanged reports whether a work was changed a moment ago to what it is to be changed to.
func (c *Creations) wasJustChanged(work client.Object) bool {
	return c.wasWritten(changeOf(work), retryAfter)
}

// wasWritten reports whether a write was made within some time.
func (c *Creations) wasWritten(w written, within time.Duration) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.at[w]
	since := c.Clock.Now().Sub(at)
	return known && since >= 0 && since < within // a clock may jump back
}
