// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
)

func TestRetryAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.Available = nil
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	first := w.record()
	if first.Phase != history.PhaseFailed || first.Attempt != 1 || len(first.Conditions) == 0 {
		t.Fatalf("the first attempt is %+v", first)
	}
	later := w.Now().Add(time.Hour)
	w.cluster.Offer(desired)
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(later) })
	w.runFor(time.Minute)
	if got := w.record(); got.Phase != history.PhasePending || got.Attempt != 2 || len(got.Conditions) > 0 || got.CompleteTime != nil {
		t.Errorf("the second attempt starts with %+v", got)
	}
	if apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, v1alpha1.ConditionSucceeded) != nil {
		t.Error("Succeeded still shows the first attempt")
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	if got := w.record(); got.Phase != history.PhaseUpgraded || got.Attempt != 2 || got.PrecedingVersion != installed {
		t.Errorf("the second attempt ends with %+v", got)
	}
	if n := len(w.get(upgrade).Status.History); n != 1 {
		t.Errorf("%d elements in the history", n)
	}
	if n := w.events("UpgradeStarted"); n != 2 {
		t.Errorf("%d notifications that an upgrade has started", n)
	}
}

func TestNextVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runToCompletion()
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(w.Now().Add(time.Minute))
	})
	w.runUntil(func() bool { return w.record().Version == "4.4.7" && w.isFinished(upgrade) })
	all := w.get(upgrade).Status.History
	if len(all) != 2 || all[0].Phase != history.PhaseUpgraded || all[0].PrecedingVersion != desired || all[1].Version != desired {
		t.Errorf("the history is %+v", all)
	}

	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = desired }) // and back
	w.runFor(time.Hour)
	cfg := w.get(upgrade)
	if c := apimeta.FindStatusCondition(cfg.Status.Conditions, v1alpha1.ConditionAccepted); c.Reason != reasonDowngrade {
		t.Errorf("Accepted is %+v", c)
	}
	if got := cfg.Status.History; len(got) != 2 || got[0].Version != desired || got[0].Phase != history.PhaseUpgraded || got[1].Version != "4.4.7" {
		t.Errorf("the history is %+v", got)
	}
	if cfg.Status.ObservedGeneration != cfg.Generation {
		t.Error("the generation was not observed")
	}
}

func TestHistoryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Jump(tenPast.Add(time.Hour).Sub(w.Now())) // the window of each is over
	w.create(upgradeConfig(upgrade))
	for i := range 20 {
		w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = fmt.Sprintf("4.5.%d", i) })
		w.runFor(time.Minute)
	}
	all := w.get(upgrade).Status.History
	if len(all) != maxHistory || all[0].Version != "4.5.19" || all[maxHistory-1].Version != "4.5.4" {
		t.Errorf("%d elements, from %s to %s", len(all), all[0].Version, all[len(all)-1].Version)
	}
}

func TestUnknownTypeInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	known := w.snapshot.Upgraders
	w.snapshot.Upgraders = nil // an older release
	w.runFor(10 * time.Minute)
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
	w.runFor(time.Minute)
	if w.exists(upgrade) || w.holder() != "" || w.events("CancellationAbandoned") != 1 {
		t.Errorf("exists: %t, the lock is held by %q, %d notifications", w.exists(upgrade), w.holder(), w.events("CancellationAbandoned"))
	}
}

func TestTwoUpgrades(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(upgrade), upgradeConfig(second, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	for !w.isFinished(upgrade) {
		before := w.Now()
		w.runUntil(func() bool { return w.Now().After(before) || w.isFinished(upgrade) })
		for _, h := range w.get(second).Status.History {
			if h.StartTime != nil && w.record().CompleteTime == nil {
				t.Fatalf("both are in progress; %s", w.describe())
			}
		}
		c := apimeta.FindStatusCondition(w.get(second).Status.Conditions, v1alpha1.ConditionProgressing)
		if w.record().StartTime != nil && !w.isFinished(upgrade) && (c.Reason != reasonClusterLocked || c.Message != "waiting for the upgrade of UpgradeConfig team-a/upgrade; only one runs at a time (until 2026-03-01T12:40:00Z)") {
			t.Fatalf("Progressing of the second is %+v", c)
		}
	}
	w.runUntil(func() bool { return w.isFinished(second) }) // the window is still open
	if got := w.get(second).Status.History[0]; got.Phase != history.PhaseUpgraded || got.PrecedingVersion != desired {
		t.Errorf("the second ends with %+v", got)
	}
}

func TestTwoUpgrades_second_misses_its_window(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(second))
	w.cluster.WorkersDuration = time.Hour
	w.runUntil(func() bool { return w.holder() != "" })
	w.create(upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	w.runFor(time.Hour)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "UpgradeConfig team-b/upgrade", finished: true})
}

func TestLockOfDeletedHolder(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(second))
	w.cluster.AcceptDelay = 24 * time.Hour
	w.runUntil(func() bool { return len(w.get(second).Finalizers) > 0 })
	w.create(upgradeConfig(upgrade))
	w.runFor(time.Minute)
	gone := w.get(second) // deleted by force
	gone.Finalizers = nil
	w.must(w.client.Update(t.Context(), gone))
	w.remove(second)
	w.runFor(maxRequeue + time.Minute)
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True CommenceUpgrade"})
}

func TestLockOfRecreatedHolder(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(second, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "2026-03-02T12:00:00Z" }))
	w.createLock(&lock.Holder{Kind: "UpgradeConfig", Namespace: second.Namespace, Name: second.Name, UID: "former"})
	w.cluster.AcceptDelay = 24 * time.Hour
	w.create(upgradeConfig(upgrade))
	w.runTo(time.Minute)
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True CommenceUpgrade"})
}

func TestPause(t *testing.T) {
	t.Parallel()
	pause := func(paused bool) func(*v1alpha1.UpgradeConfigSpec) {
		return func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = &paused }
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
		w.runFor(time.Second)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded", message: "spec.paused: no effect"})
		w.runToCompletion()
	})
}

func TestClockJump(t *testing.T) {
	t.Parallel()
	t.Run("over the whole window before the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.runTo(-time.Minute)
		w.Jump(time.Hour)
		w.runFor(6 * time.Minute)
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
		w.restart()
		w.runFor(10 * time.Minute)
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
		w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }))
		w.runTo(time.Minute)
		w.Jump(-time.Hour)
		w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = nil })
		w.runFor(30 * time.Minute)
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
			w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = text }))
			w.runUntil(func() bool { return w.holder() != "" })
			if late := w.Now().Sub(want); late != 0 {
				t.Errorf("it started %s late", late)
			}
			w.runToCompletion()
		})
	}
}

func TestLockHolderOfEarlierAttemptIsNotNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.createLock(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	w.runTo(31 * time.Minute)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "team-b/job", finished: true})
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(-time.Hour)) })
	w.runFor(time.Minute)
	if c := apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, v1alpha1.ConditionSucceeded); strings.Contains(c.Message, "team-b/job") || w.record().Attempt != 2 {
		t.Errorf("attempt %d: %+v", w.record().Attempt, c)
	}
}

// The API server rejects such a change; an older CRD does not.
func TestSpecChangeDoesNotConcernTheAttemptInProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 5 * time.Minute
	w.runUntilRequested()
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(tenPast.Add(-24*time.Hour))
	})
	w.runUntil(func() bool { return w.record().Version == "4.4.7" })
	all := w.get(upgrade).Status.History
	if len(all) != 2 || all[1].Version != desired || all[1].Phase != history.PhaseUpgraded {
		t.Errorf("the history is %+v", all)
	}
	w.runFor(time.Minute)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", finished: true})
}
