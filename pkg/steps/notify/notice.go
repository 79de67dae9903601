// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// NoticeKeepAlive publishes a notification when there is one, as a keep-alive of a waiting step.
// notice returns the notification, or nil if there is none. Its ID ensures that it is published
// only once. A failed delivery does not hold up the upgrade.
func NoticeKeepAlive(notifier Notifier, notice func(context.Context) (*ObjectNotification, error)) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		notification, err := notice(ctx)
		switch {
		case err != nil:
			return engine.Result{}, err
		case notification == nil:
			return engine.Done("there is nothing to say"), nil
		}
		if err := notification.send(ctx, notifier); err != nil {
			return engine.Result{}, fmt.Errorf("sending notification %s: %w", notification.Reason, err)
		}
		return engine.Done("%s", notification.Message), nil
	}
}
