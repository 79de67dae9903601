// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Delayed is a keeper: it delivers one notification once the upgrade has been
// under way for that long. A step of its own could only tell of a wait that is
// over, so the steps that may wait for long before the commit keep this one,
// all with the same id, by which it is told once. Until then it asks for
// nothing but to be called in time; that it cannot be delivered holds up nobody.
func Delayed(n Notifier, after time.Duration, subject corev1.ObjectReference, id, eventType, reason, message string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if left := run.Started.Add(after).Sub(run.Now); left > 0 {
			return engine.WaitFor(left, "NotDelayed", "not delayed yet"), nil
		}
		if err := n.Notify(ctx, subject, id, eventType, reason, message); err != nil {
			return engine.Result{}, fmt.Errorf("telling of the delay: %w", err)
		}
		return engine.Done("told: %s", message), nil
	}
}
