// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

func TestClockJump(t *testing.T) {
	t.Parallel()
	t.Run("over the whole window before the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.runTo(-time.Minute)
		w.Jump(time.Hour)
		w.RunFor(6 * time.Minute)
		w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", finished: true})
		if len(w.requestedVersions) > 0 {
			t.Errorf("requests: %q", w.requestedVersions)
		}
	})
	t.Run("over the end of the window before the commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cluster.AcceptDelay = 2 * time.Minute
		w.runUntilRequested()
		w.Jump(time.Hour)
		w.cluster.Unresponsive = true
		w.Restart()
		w.RunFor(10 * time.Minute)
		w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", finished: true})
		if len(w.requestedVersions) != 2 || w.requestedVersions[1] != "" {
			t.Errorf("requests: %q", w.requestedVersions)
		}
	})
	t.Run("over the end of the window after the commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.runUntilStep("ControlPlaneUpgraded")
		w.Jump(time.Hour)
		w.runToCompletion()
	})
	t.Run("back to before the window before the commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cluster.AcceptDelay = 5 * time.Minute
		w.runUntilRequested()
		w.Jump(-time.Hour)
		w.runToCompletion()
	})
	t.Run("back to before the window before the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }))
		w.runTo(time.Minute)
		w.Jump(-time.Hour)
		w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = nil })
		w.RunFor(30 * time.Minute)
		w.expect(outcome{phase: history.PhasePending, condition: "Progressing=False Scheduled"})
		w.runToCompletion()
	})
}

func TestUpgradeAtIsAnInstant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-03-01T12:10:00Z":                tenPast,
		"2026-03-01T14:10:00+02:00":           tenPast,
		"2026-03-01T06:40:00.25-05:30":        tenPast.Add(250 * time.Millisecond),
		"2026-03-01T12:10:00.999999999+00:00": tenPast.Add(time.Second - time.Nanosecond),
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = text }))
			w.runUntil(func() bool { return w.holder() != "" })
			if late := w.Now().Sub(want); late != 0 {
				t.Errorf("it started %s late", late)
			}
			w.runToCompletion()
		})
	}
}

// A pending attempt whose cache lags does not end for what the cluster looked like before.
func TestPendingAttemptIsNotEndedByALaggingCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = 3 * time.Hour
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) { version.Spec.Channel = channel })
	w.pause()
	w.runTo(20 * time.Minute)
	w.lag(20*time.Minute, "ClusterVersion")
	w.requestElsewhere(desired)
	w.runTo(35 * time.Minute)
	if w.isFinished(upgrade) {
		t.Fatalf("it ended on an outdated cache; %s", w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
}

// A start after the requested time that lies in the future comes from a clock that was ahead.
func TestStartOfAClockThatWasAheadIsHeldUntilTheWindow(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"a day": 24 * time.Hour, "a little more than clocks differ": 12 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.Process.Kill()
			cfg := w.get(upgrade)
			start, at := metav1.NewTime(w.Now().Add(ahead).Truncate(time.Second)), metav1.NewTime(tenPast)
			cfg.Status.History = []history.Record{{Version: desired, Phase: history.PhaseUpgrading, Attempt: 1, UpgradeAt: &at, StartTime: &start}}
			w.UpdateStatus(cfg)
			w.Begin()
			w.runTo(-time.Second)
			if got := w.requested(); got != "" {
				t.Errorf("%s is requested before the window; %s", got, w.describe())
			}
			w.runToCompletion()
		})
	}
}
