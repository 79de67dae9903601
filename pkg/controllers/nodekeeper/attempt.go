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

// Source is a kind of upgrade objects whose drains are kept moving.
type Source struct {
	// Kind declares the objects. Their changes start and end what is done about drains.
	Kind manager.Kind
	// Active returns the attempts that have passed their point of no return, are not finished, and
	// whose drains may be forced. Before that point nodes may be drained, but not because of an
	// upgrade. It reads the objects from the cache.
	Active func(ctx context.Context, cache client.Reader) ([]Attempt, error)
}

// Attempt holds what affects drains of an upgrade.
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
	// PDBTimeoutField is the name of the field that sets PDBTimeout, for messages.
	PDBTimeoutField string
}

// notificationID returns the ID of a notification about an object in this attempt.
func (a *Attempt) notificationID(uid types.UID, key string) string {
	return engine.NotificationID(string(uid), a.Key, "", key)
}

// activeAttempt returns the active attempt of all kinds that started last; nil means none. The lock
// of the cluster admits one at a time. An error of one kind is an error: its attempt could be the
// active one.
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
