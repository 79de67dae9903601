// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Clock is a clock of a World. The clock of a process may differ from the API server's clock (see
// Step).
type Clock struct {
	clock.WithTicker // nil: nothing in a simulation waits for a timer

	world *World
	skew  time.Duration
}

// Now returns the virtual time.
func (c *Clock) Now() time.Time { return c.world.now.Add(c.skew) }

// Since returns the virtual time elapsed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// WithTimeout is context.WithTimeout in virtual time, independent of real time.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return virtualContext{ctx, c.world, c.world.now.Add(d)}, cancel
}

// virtualContext is a context that ends at a virtual time. Its Done channel is closed only with its
// parent's, because nothing in a simulation waits while time passes.
type virtualContext struct {
	context.Context //nolint:containedctx // It is a context itself.
	world           *World
	deadline        time.Time
}

// Err returns DeadlineExceeded once the virtual deadline has passed.
func (c virtualContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.world.now.Before(c.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// deadlineKey is the context key of the virtual deadline.
type deadlineKey struct{}

// Value returns the value of a key.
func (c virtualContext) Value(key any) any {
	if key == (deadlineKey{}) {
		return c.deadline
	}
	return c.Context.Value(key)
}

// Deadline returns the virtual deadline of a context, or false if there is none.
func Deadline(ctx context.Context) (time.Time, bool) {
	deadline, set := ctx.Value(deadlineKey{}).(time.Time)
	return deadline, set
}

// Step moves the clock by d, like an administrator or NTP. Running timers are not affected.
func (c *Clock) Step(d time.Duration) { c.skew += d }
