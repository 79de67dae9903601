// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// timeout is how long delivery is retried before the upgrade continues without it.
const timeout = 5 * time.Minute

// Notifier delivers a notification about an object. It may be called repeatedly with the same ID;
// the receiver then sees one notification.
type Notifier interface {
	Publish(ctx context.Context, subject corev1.ObjectReference, n engine.Notification) error
}

// Send delivers one notification. It retries for five minutes, and is then skipped.
func Send(notifier Notifier, notification ObjectNotification) engine.UpgradeStep {
	retry := engine.Retry{Timeout: timeout, Reason: engine.ReasonNotDelivered, Failing: "not sent"}
	return retry.Step(func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		if err := notification.send(ctx, notifier); err != nil {
			return engine.Result{}, err
		}
		return engine.Done("%s", notification.Message), nil
	})
}

func (n ObjectNotification) send(ctx context.Context, notifier Notifier) error {
	return notifier.Publish(ctx, n.Subject, n.Notification)
}
