// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Attempts lists the upgrades whose drains are kept moving. It hides their kinds.
type Attempts interface {
	// Active returns the attempts that have passed their point of no return and are not finished.
	// Before that point nodes may be drained, but not because of an upgrade.
	Active(ctx context.Context) ([]Attempt, error)
}

// Attempt is what affects drains of an upgrade.
type Attempt struct {
	// Version is the version that the upgrade leads to.
	Version string
	// Key identifies the attempt among all attempts of all objects of all kinds.
	Key string
	// StartTime is when the first step started.
	StartTime time.Time
	// PDBTimeout is how long a PodDisruptionBudget may keep a pod on a node; negative means
	// without limit.
	PDBTimeout time.Duration
}

// notificationID returns the ID of a notification about an object in this attempt.
func (a *Attempt) notificationID(uid types.UID, key string) string {
	return engine.NotificationID(string(uid), a.Key, "", key)
}

// activeAttempt returns the active attempt that started last; nil means that there is none. The
// lock of the cluster admits one at a time.
func (r *Reconciler) activeAttempt(ctx context.Context) (*Attempt, error) {
	attempts, err := r.Attempts.Active(ctx)
	if err != nil {
		return nil, err
	}
	var latest *Attempt
	for i := range attempts {
		if latest == nil || attempts[i].StartTime.After(latest.StartTime) {
			latest = &attempts[i]
		}
	}
	return latest, nil
}
