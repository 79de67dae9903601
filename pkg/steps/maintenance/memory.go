// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"maps"
	"time"
)

// note is what a memory is about.
type note struct {
	uid, attempt, window string
}

// memory is what came of the last look at a window.
type memory struct {
	at  time.Time // when that was
	due time.Time // when to look again
	err error     // what was wrong
}

// retry is when a window that could not be kept is looked at again.
const retry = time.Minute

// recall says what is known of a window, and whether that still holds.
func (s *Silencer) recall(w Window, now time.Time) (memory, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.notes[w.note()]
	return m, known && now.Before(m.due) && !now.Before(m.at) // a clock may jump back
}

// remember keeps what came of a look, and drops what nobody has asked for in a while.
func (s *Silencer) remember(w Window, m memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes == nil {
		s.notes = map[note]memory{}
	}
	maps.DeleteFunc(s.notes, func(_ note, old memory) bool { return m.at.Sub(old.due) > time.Hour })
	s.notes[w.note()] = m
}

// forget drops what is known of the windows of an UpgradeConfig.
func (s *Silencer) forget(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.notes, func(n note, _ memory) bool { return n.uid == uid })
}

func (w Window) note() note { return note{w.about.UID, w.about.Key(), w.name} }
