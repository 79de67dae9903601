// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// The operator's own writes cause no pass. Writes of another client do.
func TestOwnWritesCauseNoPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.RunFor(time.Minute)
	w.reconciles = 0
	w.create(upgradeConfig(upgrade, newTime(w.Now().Add(time.Hour))))
	w.RunFor(time.Second)
	if len(w.get(upgrade).Status.Conditions) == 0 || w.reconciles != 1 {
		t.Errorf("%d passes for a new object, want 1; %s", w.reconciles, w.describe())
	}
	w.clearStatus(upgrade)
	w.RunFor(time.Second)
	if len(w.get(upgrade).Status.Conditions) == 0 || w.reconciles != 2 {
		t.Errorf("%d passes once its status was lost, want 2; %s", w.reconciles, w.describe())
	}
}

// The finalizer is removed after the release of the lock, because an object that no longer exists could not
// release it.
func TestFinalizerIsRemovedAfterTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	removed := false
	w.Observe(func(change simulation.Change) {
		before, isOld := change.Old.(*upgradev1alpha1.UpgradeConfig)
		after, isNew := change.New.(*upgradev1alpha1.UpgradeConfig)
		if !isOld || !isNew || len(before.Finalizers) == 0 || len(after.Finalizers) > 0 {
			return
		}
		removed = true
		if holder := w.holder(); holder != "" {
			t.Errorf("%s still holds the lock", holder)
		}
	})
	w.runUntil(func() bool { return w.isFinished(upgrade) && removed })
}
