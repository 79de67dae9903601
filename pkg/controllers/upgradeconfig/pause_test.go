// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

func TestPause(t *testing.T) {
	t.Parallel()
	pause := func(paused bool) func(*upgradev1alpha1.UpgradeConfigSpec) {
		return func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = &paused }
	}
	t.Run("before the start holds the upgrade", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade, pause(true)))
		w.runTo(10 * time.Minute)
		w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Paused", message: "12:40"})
		w.updateSpec(upgrade, pause(false))
		w.runToCompletion()
	})
	t.Run("before the start until the window closes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade, pause(true)))
		w.runTo(31 * time.Minute)
		w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", finished: true})
	})
	t.Run("before the commit holds the step", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.runUntilStep("VersionPinned")
		w.updateSpec(upgrade, pause(true))
		w.runTo(20 * time.Minute)
		if len(w.requestedVersions) > 0 {
			t.Error("the upgrade continued")
		}
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True VersionPinned", message: "paused by spec.paused"})
		w.updateSpec(upgrade, pause(false))
		w.runToCompletion()
	})
	t.Run("after the commit has no effect", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.runUntilStep("ControlPlaneUpgraded")
		w.updateSpec(upgrade, pause(true))
		w.RunFor(time.Second)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded", message: "spec.paused: no effect"})
		w.runToCompletion()
	})
}

func TestPauseWithdrawsWhatWasRequested(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hold, release func(*world) }{
		"spec.paused": {
			hold:    (*world).pause,
			release: func(w *world) { w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = nil }) },
		},
		"hold of the cluster": {
			hold:    func(w *world) { w.hold("the storage is migrated") },
			release: func(w *world) { w.hold("") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 5 * time.Minute
			w.runUntilRequested()
			c.hold(w)
			w.RunFor(10 * time.Minute)
			if diff := cmp.Diff([]string{desired, ""}, w.requestedVersions); diff != "" {
				t.Errorf("requests while it is held (-want +got):\n%s", diff)
			}
			c.release(w)
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
			if diff := cmp.Diff([]string{desired, "", desired}, w.requestedVersions); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHoldOfTheCluster(t *testing.T) {
	t.Parallel()
	const shown = "held by annotation upgrade.managed.openshift.io/hold of the ClusterVersion: the storage is migrated"
	w := newWorld(t, upgradeConfig(upgrade))
	w.hold("the storage\n is migrated\x07")
	w.runTo(-time.Minute)
	w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled", message: shown})
	if n := w.events("UpgradeHeld"); n != 1 {
		t.Errorf("%d notifications before the window opens", n)
	}
	w.expectSeries("held", map[string]float64{"": 1})
	w.runTo(time.Minute)
	w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Held", message: shown})
	if n := w.events("UpgradeHeld"); n != 1 {
		t.Errorf("%d notifications", n)
	}
	w.runTo(31 * time.Minute)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "the storage is migrated", finished: true})

	w.updateSpec(upgrade, newTime(w.Now()))
	w.hold("")
	w.runUntilStep("ControlPlaneUpgraded")
	w.hold("too late")
	w.RunFor(time.Second)
	w.expectSeries("held", map[string]float64{"": 0})
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded", message: "no effect once the upgrade has commenced"})
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
}
