// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// timeout is for how long delivery is tried before the upgrade goes on without it.
const timeout = 5 * time.Minute

// Notifier delivers a notification about an object. It may be called more than
// once with the same ID, and then delivers at most one to the eye of the receiver.
type Notifier interface {
	Publish(ctx context.Context, subject corev1.ObjectReference, n engine.Notification) error
}

// Send delivers one notification. While that does not work it tries again,
// each time after half as long as it has been trying for; after five minutes
// it leaves it.
func Send(notifier Notifier, notification Notification) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		err := notification.send(ctx, notifier)
		if err == nil {
			return engine.Done("told: %s", notification.Message), nil
		}
		retryAfter, ok := run.Retry(timeout)
		if !ok {
			return engine.Skip("NotDelivered", "not told in %s of trying: %v", timeout, err), nil
		}
		return engine.WaitFor(retryAfter, "NotDelivered", "not told yet: %v", err), nil
	}
}

func (n Notification) send(ctx context.Context, notifier Notifier) error {
	return notifier.Publish(ctx, n.Subject, n.Notification)
}
