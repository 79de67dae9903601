// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence

import (
	"maps"
	"time"
)

// cacheKey is what a memory is about.
type cacheKey struct {
	uid, attempt, window string
}

// cacheEntry is what came of the last look at a window.
type cacheEntry struct {
	at  time.Time // when that was
	due time.Time // when to look again
	err error     // what was wrong
}

// retryInterval is when a window that could not be kept is looked at again.
const retryInterval = time.Minute

// get says what is known of a window, and whether that still holds.
func (s *Silencer) get(w Window, now time.Time) (cacheEntry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.cache[w.cacheKey()]
	return m, ok && now.Before(m.due) && !now.Before(m.at) // a clock may jump back
}

// set keeps what came of a look, and drops what nobody has asked for in a while.
func (s *Silencer) set(w Window, m cacheEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		s.cache = map[cacheKey]cacheEntry{}
	}
	maps.DeleteFunc(s.cache, func(_ cacheKey, old cacheEntry) bool { return m.at.Sub(old.due) > time.Hour })
	s.cache[w.cacheKey()] = m
}

// invalidate drops what is known of the windows of an UpgradeConfig.
func (s *Silencer) invalidate(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.cache, func(n cacheKey, _ cacheEntry) bool { return n.uid == uid })
}

func (w Window) cacheKey() cacheKey { return cacheKey{w.attempt.UID, w.attempt.ID(), w.name} }
