// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache holds a value per object for as long as the process lives.
type cache[V any] struct {
	mu      sync.Mutex
	entries map[client.ObjectKey]V
}

// get returns the value of an object, or zero if there is none.
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

// memory holds what this process knows about an object beyond its status. Only passes over the object use it.
type memory struct {
	uid         types.UID
	precheck    precheckResult
	shown       shownStatus // the last written status
	claim       claim       // the last answer of the API server about the Lease
	acquired    time.Time   // when the lock was last acquired
	saved       time.Time   // when the engine's record was last saved
	unrequested time.Time   // when a request was last withdrawn or had no effect
	republished time.Time   // when a result was last published in vain
}

// memoryOf returns the memory of an object. It forgets an earlier object of the same name, and what was
// published about it.
func (r *Reconciler[T]) memoryOf(obj T) *memory {
	key := client.ObjectKeyFromObject(obj)
	last := r.memories.get(key)
	if last != nil && last.uid == obj.GetUID() {
		return last
	}
	if last != nil {
		r.Notifier.Reset(string(last.uid))
	}
	fresh := &memory{uid: obj.GetUID()}
	r.memories.set(key, fresh)
	return fresh
}
