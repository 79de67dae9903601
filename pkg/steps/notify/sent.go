// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// patience is for how long delivery is tried before the upgrade goes on without it.
const patience = 5 * time.Minute

// Notifier delivers a notification about an object. It may be called more than
// once with the same ID, and then delivers at most one to the eye of the receiver.
type Notifier interface {
	Notify(ctx context.Context, subject corev1.ObjectReference, n engine.Notice) error
}

// Sent delivers one notification. While that does not work it tries again,
// each time after half as long as it has been trying for; after five minutes
// it leaves it.
func Sent(to Notifier, what Notification) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		err := what.tell(ctx, to)
		if err == nil {
			return engine.Done("told: %s", what.Message), nil
		}
		again, goOn := run.Retry(patience)
		if !goOn {
			return engine.Skip("NotDelivered", "not told in %s of trying: %v", patience, err), nil
		}
		return engine.WaitFor(again, "NotDelivered", "not told yet: %v", err), nil
	}
}

func (n Notification) tell(ctx context.Context, to Notifier) error {
	return to.Notify(ctx, n.Subject, n.Notice)
}
