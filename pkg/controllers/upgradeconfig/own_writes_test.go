// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"
)

// What the operator has written causes no pass. What another client writes causes one.
func TestOwnWritesCauseNoPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runFor(time.Minute)
	w.reconciles = 0
	w.create(upgradeConfig(upgrade, newTime(w.Now().Add(time.Hour))))
	w.runFor(time.Second)
	if len(w.get(upgrade).Status.Conditions) == 0 || w.reconciles != 1 {
		t.Errorf("%d passes for a new object, want 1; %s", w.reconciles, w.describe())
	}
	w.clearStatus(upgrade)
	w.runFor(time.Second)
	if len(w.get(upgrade).Status.Conditions) == 0 || w.reconciles != 2 {
		t.Errorf("%d passes once its status was lost, want 2; %s", w.reconciles, w.describe())
	}
}
