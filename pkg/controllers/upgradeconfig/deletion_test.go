// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

func TestUnknownTypeInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	known := w.snapshot.Upgraders
	w.snapshot.Upgraders = nil // an older release
	w.RunFor(10 * time.Minute)
	w.expect(outcome{phase: history.PhaseUnknown, condition: "Accepted=False UnknownType", message: "OSD"})
	if w.holder() == "" {
		t.Error("the lock was released")
	}
	w.snapshot.Upgraders = known
	w.runToCompletion()
}

func TestUnknownTypeDeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.snapshot.Upgraders = nil // an older release
	w.remove(upgrade)
	w.RunFor(time.Minute)
	if w.exists(upgrade) || w.holder() != "" || w.events("CancellationAbandoned") != 1 {
		t.Errorf("exists: %t, the lock is held by %q, %d notifications", w.exists(upgrade), w.holder(), w.events("CancellationAbandoned"))
	}
}

func TestDeletionReportsTheFailureThatIsBeingCleanedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	w.requestElsewhere("4.4.7")
	w.RunFor(time.Minute)
	if got := w.condition("Succeeded"); !strings.HasPrefix(got, "False Superseded") {
		t.Fatalf("Succeeded is %q; %s", got, w.describe())
	}
	w.remove(upgrade)
	w.RunFor(time.Minute)
	if w.exists(upgrade) || w.events("UpgradeFailed") != 1 || w.events("UpgradeContinues") != 0 {
		t.Errorf("there: %t, %d failures, %d continue", w.exists(upgrade), w.events("UpgradeFailed"), w.events("UpgradeContinues"))
	}
}

func TestDeletionIsBounded(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*world){
		"target cannot be withdrawn": func(w *world) { w.Writes = refuse("patch ClusterVersion") },
		"cluster unreadable":         func(w *world) { w.failReads(24 * time.Hour) },
		"cluster unreadable and record lost": func(w *world) {
			w.clearStatus(upgrade)
			w.failReads(24 * time.Hour)
		},
		"status cannot be written": func(w *world) { w.Writes = refuse("patch UpgradeConfig/status") },
		"lock of another upgrade": func(w *world) {
			w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			spoil(w)
			deleted := w.remove(upgrade)
			w.After(7*time.Minute+30*time.Second, func() { w.enqueue(upgrade) }) // a node has changed
			w.runUntil(func() bool { return !w.exists(upgrade) })
			took := w.Now().Sub(deleted)
			if took < 9*time.Minute || took > 11*time.Minute {
				t.Errorf("it took %s", took)
			}
			if n := w.events("CancellationAbandoned"); n != 1 {
				t.Errorf("%d notifications", n)
			}
		})
	}
}
