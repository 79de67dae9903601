// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// DelayKeepAlive is a keeper: it tells once the upgrade has been under way for that
// long. A step could only tell of a wait that is over, so the steps that may
// wait for long before the commit keep this, all with the same ID, by which it
// is told once. Until then it asks for nothing but to be called in time; that it
// cannot be told holds up nobody.
func DelayKeepAlive(notifier Notifier, after time.Duration, notification Notification) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if remaining := run.Started.Add(after).Sub(run.Now); remaining > 0 {
			return engine.WaitFor(remaining, "NotDelayed", "not delayed yet"), nil
		}
		if err := notification.send(ctx, notifier); err != nil {
			return engine.Result{}, fmt.Errorf("telling of the delay: %w", err)
		}
		return engine.Done("told: %s", notification.Message), nil
	}
}

// SendIfDelayed is the step behind the commit that has in the record what Delayed
// has told, and tells it where that could not. It is skipped as NotDelayed if
// the steps before it took less.
func SendIfDelayed(notifier Notifier, after time.Duration, notification Notification) engine.UpgradeStep {
	send := Send(notifier, notification)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if run.Since.Sub(run.Started) < after {
			return engine.Skip("NotDelayed", "the upgrade commenced in time"), nil
		}
		return send(ctx, run)
	}
}
