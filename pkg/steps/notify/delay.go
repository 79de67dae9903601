// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// DelayKeepAlive publishes the notification once the upgrade has been running for after. A step
// could only notify after its wait, so all steps that may wait long before the point of no return
// have this keep-alive. They share one ID, so the notification is only published once. A failed
// delivery does not hold up the upgrade.
func DelayKeepAlive(notifier Notifier, after time.Duration, notification ObjectNotification) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if remaining := run.Started.Add(after).Sub(run.Now); remaining > 0 {
			return engine.WaitFor(remaining, "NotDelayed", "not delayed yet"), nil
		}
		if err := notification.send(ctx, notifier); err != nil {
			return engine.Result{}, fmt.Errorf("sending the notification of the delay: %w", err)
		}
		return engine.Done("%s", notification.Message), nil
	}
}

// SendIfDelayed records the notification of DelayKeepAlive, and publishes it if the keep-alive
// could not. It runs after the point of no return. It is skipped as NotDelayed if the steps before
// it took less than after.
func SendIfDelayed(notifier Notifier, after time.Duration, notification ObjectNotification) engine.UpgradeStep {
	send := Send(notifier, notification)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if run.Since.Sub(run.Started) < after {
			return engine.Skip("NotDelayed", "the upgrade commenced in time"), nil
		}
		return send(ctx, run)
	}
}
