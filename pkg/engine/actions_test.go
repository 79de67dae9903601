// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"time"
)

// after schedules an event.
func (w *world) after(d time.Duration, do func()) {
	w.events = append(w.events, event{at: w.clock.Now().Add(d), do: do})
}

// run drives the upgrade until a pass reports that it is finished. It retries errors as a work
// queue does, and ends a process that keeps failing to save.
func (w *world) run() {
	w.t.Helper()
	w.runUntil(func() bool { return false })
}

// runUntil drives the upgrade until the condition holds, or the upgrade is finished.
func (w *world) runUntil(so func() bool) {
	w.t.Helper()
	failures := 0
	for range 2000 {
		if so() {
			return
		}
		next, err := w.pass()
		switch {
		case errors.Is(err, errCrashed):
			w.restart()
		case err != nil:
			if failures++; failures%3 == 0 {
				w.restart()
			}
			w.advance(w.clock.Now().Add(time.Second))
		case next.IsZero():
			return
		default:
			w.advance(next)
		}
	}
	w.t.Fatalf("no end in sight after %d passes; the record is\n%q", w.passes, lines(w.store.stored))
}

// restart starts a new process, whose saves reach the store again.
func (w *world) restart() { w.store.dead = false }

// advance moves the clock to that time, or to the next event if it is earlier.
func (w *world) advance(to time.Time) {
	first := -1
	for i, h := range w.events {
		if !h.at.After(to) && (first < 0 || h.at.Before(w.events[first].at)) {
			first = i
		}
	}
	if first < 0 {
		w.clock.SetTime(to)
		return
	}
	h := w.events[first]
	w.events = append(w.events[:first:first], w.events[first+1:]...)
	if h.at.After(w.clock.Now()) {
		w.clock.SetTime(h.at)
	}
	h.do()
}

// pause moves the clock without a pass: the operator is down, and the cluster is not.
func (w *world) pause(d time.Duration) {
	for until := w.clock.Now().Add(d); w.clock.Now().Before(until); {
		w.advance(until)
	}
}
