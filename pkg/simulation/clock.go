// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import "time"

// Clock is a clock of a World. It implements clock.PassiveClock. The clock of a process may differ
// from that of the API server: Step moves it.
type Clock struct {
	world *World
	skew  time.Duration
}

// Now returns the virtual time.
func (c *Clock) Now() time.Time { return c.world.now.Add(c.skew) }

// Since returns the virtual time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Step moves the clock by d, as an administrator or NTP does. Timers that are running are not
// affected.
func (c *Clock) Step(d time.Duration) { c.skew += d }
