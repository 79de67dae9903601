// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// AttemptSource is a kind of upgrade object that causes drains.
type AttemptSource struct {
	// Kind declares the objects. Their changes start and stop the handling of drains.
	Kind manager.Kind
	// Active returns the unfinished attempts that have passed their point of no return and whose
	// drains may be forced. Drains before that point are not for the upgrade. Active reads the
	// objects from the cache.
	Active func(ctx context.Context, cache client.Reader) ([]Attempt, error)
}

// Attempt holds the facts about an attempt that affect drains.
type Attempt struct {
	// Version is the target version of the upgrade.
	Version string
	// Key identifies the attempt among all attempts of all objects of all kinds.
	Key string
	// StartTime is the start time of the first step.
	StartTime time.Time
	// PDBTimeout is how long a PodDisruptionBudget may keep a pod on a node; negative sets no
	// limit.
	PDBTimeout time.Duration
	// PDBTimeoutField is the name of the field that sets PDBTimeout, for use in messages.
	PDBTimeoutField string
}

// notificationID returns the ID of this attempt's notification about an object.
func (a *Attempt) notificationID(uid types.UID, key string) string {
	return engine.NotificationID(string(uid), a.Key, "", key)
}

// activeAttempt returns the active attempt that started last, across all kinds; nil if there is
// none. The cluster lock admits one at a time. An error of any kind is returned, because that kind
// could have the active attempt.
func (r *Reconciler) activeAttempt(ctx context.Context) (*Attempt, error) {
	var latest *Attempt
	for _, source := range r.Sources {
		attempts, err := source.Active(ctx, r.Client)
		if err != nil {
			return nil, err
		}
		for i := range attempts {
			if latest == nil || attempts[i].StartTime.After(latest.StartTime) {
				latest = &attempts[i]
			}
		}
	}
	return latest, nil
}
