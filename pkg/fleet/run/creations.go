// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

const cacheTimeout = 5 * time.Second // how long the cache may lack a work that was created

// removalTimeout is how long it is remembered that a work was removed. After that, or after a restart of the process, it
// is delivered and removed once more.
const removalTimeout = 2 * time.Minute

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

type written struct {
	key      client.ObjectKey
	delivery string // what the work was changed to deliver, or the end of the soak for which it was removed; empty means that it was created
}

func creationOf(work client.Object) written { return written{key: client.ObjectKeyFromObject(work)} }

func changeOf(work client.Object) written {
	return written{client.ObjectKeyFromObject(work), delivery.Of(work)}
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
		if now.Sub(at) > removalTimeout {
			delete(c.at, other)
		}
	}
	if c.at == nil {
		c.at = map[written]time.Time{}
	}
	c.at[w] = now
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
