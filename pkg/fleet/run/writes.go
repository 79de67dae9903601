// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	cacheTimeout   = 5 * time.Second // how long the cache may be behind a write
	removalTimeout = 2 * time.Minute // how long a removal is remembered; after that, the work is delivered and removed again
)

// Writes remember each work as this process has written it last: it is read like that until the cache follows, and it is
// not changed twice in the same way without a pause, because another process may have changed it in between, and the two
// would take turns. They may be used by several goroutines. A nil Writes remembers nothing.
type Writes struct {
	// Clock provides the time.
	Clock clock.PassiveClock

	mu   sync.Mutex
	last map[client.ObjectKey]write
}

type write struct {
	work     *workv1.ManifestWork // nil if it was removed, or written before cacheTimeout
	delivery string               // what it delivers, or the end of the soak that removed it
	at       time.Time
}

func (w *Writes) note(key client.ObjectKey, work *workv1.ManifestWork, delivery string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	for key, old := range w.last {
		switch age := now.Sub(old.at); {
		case age > removalTimeout:
			delete(w.last, key)
		case age > cacheTimeout:
			w.last[key] = write{nil, old.delivery, old.at} // a work may be large
		}
	}
	if w.last == nil {
		w.last = map[client.ObjectKey]write{}
	}
	w.last[key] = write{work, delivery, now}
}

// of returns the last write of a work, if it was made within some time.
func (w *Writes) of(key client.ObjectKey, within time.Duration) write {
	if w == nil {
		return write{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.last[key]
	if age := w.Clock.Now().Sub(last.at); age < 0 || age >= within { // a clock may jump back
		return write{}
	}
	return last
}

// newer returns the cached work, or a copy of the written one if the cache is behind. The cached work may be nil.
func (w *Writes) newer(key client.ObjectKey, cached *workv1.ManifestWork) *workv1.ManifestWork {
	written := w.of(key, cacheTimeout).work
	if written == nil {
		return cached
	}
	if cached != nil {
		if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, written.ResourceVersion); err != nil || order >= 0 {
			return cached
		}
	}
	return written.DeepCopy()
}
