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

// memory holds what this process knows of one object beside its status. Only the pass over the object uses it.
type memory struct {
	uid         types.UID
	precheck    precheckResult // the last one
	shown       shownStatus    // the status that was written last
	claim       claim          // what the API server has answered about the Lease
	saved       time.Time      // when the engine's record was last saved
	unrequested time.Time      // when a request was last withdrawn or had no effect
	republished time.Time      // when publishing a result was last tried in vain
}

// memoryOf returns the memory of an object. What is known of, and was published about, an earlier object of the same name is
// forgotten.
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
