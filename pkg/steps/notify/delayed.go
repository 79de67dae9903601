// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Delayed is a keeper: it tells once the upgrade has been under way for that
// long. A step could only tell of a wait that is over, so the steps that may
// wait for long before the commit keep this, all with the same ID, by which it
// is told once. Until then it asks for nothing but to be called in time; that it
// cannot be told holds up nobody.
func Delayed(to Notifier, after time.Duration, what Notification) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if left := run.Started.Add(after).Sub(run.Now); left > 0 {
			return engine.WaitFor(left, "NotDelayed", "not delayed yet"), nil
		}
		if err := what.tell(ctx, to); err != nil {
			return engine.Result{}, fmt.Errorf("telling of the delay: %w", err)
		}
		return engine.Done("told: %s", what.Message), nil
	}
}

// DelayedSent is the step behind the commit that has in the record what Delayed
// has told, and tells it where that could not. It is skipped as NotDelayed if
// the steps before it took less.
func DelayedSent(to Notifier, after time.Duration, what Notification) engine.UpgradeStep {
	sent := Sent(to, what)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if run.Since.Sub(run.Started) < after {
			return engine.Skip("NotDelayed", "the upgrade commenced in time"), nil
		}
		return sent(ctx, run)
	}
}
