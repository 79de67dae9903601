// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestTwoUpgrades(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(upgrade), upgradeConfig(second, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	for !w.isFinished(upgrade) {
		before := w.Now()
		w.runUntil(func() bool { return w.Now().After(before) || w.isFinished(upgrade) })
		for _, h := range w.get(second).Status.History {
			if h.StartTime != nil && w.record().CompleteTime == nil {
				t.Fatalf("both are in progress; %s", w.describe())
			}
		}
		c := apimeta.FindStatusCondition(w.get(second).Status.Conditions, upgradev1alpha1.ConditionProgressing)
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
	w.create(upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	w.RunFor(time.Hour)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "UpgradeConfig team-b/upgrade", finished: true})
}

func TestLockOfDeletedHolder(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(second))
	w.cluster.AcceptDelay = 24 * time.Hour
	w.runUntil(func() bool { return len(w.get(second).Finalizers) > 0 })
	w.create(upgradeConfig(upgrade))
	w.RunFor(time.Minute)
	w.removeFinalizers(second) // deleted by force
	w.remove(second)
	w.RunFor(maxRequeue + time.Minute)
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True CommenceUpgrade"})
}

func TestLockOfRecreatedHolder(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	w := newWorld(t, upgradeConfig(second, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = "2026-03-02T12:00:00Z" }))
	w.createLock(&lock.Holder{Kind: "UpgradeConfig", Namespace: second.Namespace, Name: second.Name, UID: "former"})
	w.cluster.AcceptDelay = 24 * time.Hour
	w.create(upgradeConfig(upgrade))
	w.runTo(time.Minute)
	w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True CommenceUpgrade"})
}

func TestLockHolderOfEarlierAttemptIsNotNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.createLock(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	w.runTo(31 * time.Minute)
	w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False WindowMissed", message: "team-b/job", finished: true})
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(-time.Hour)) })
	w.RunFor(time.Minute)
	if c := apimeta.FindStatusCondition(w.get(upgrade).Status.Conditions, upgradev1alpha1.ConditionSucceeded); strings.Contains(c.Message, "team-b/job") || w.record().Attempt != 2 {
		t.Errorf("attempt %d: %+v", w.record().Attempt, c)
	}
}

func TestLockOfAFinishedUpgradeIsBroken(t *testing.T) {
	t.Parallel()
	second := client.ObjectKey{Namespace: "team-b", Name: "upgrade"}
	for name, identity := range map[string]string{
		"identity of this release":     "upgrade.managed.openshift.io/UpgradeConfig/",
		"identity of a former release": "UpgradeConfig/",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(second, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed }))
			w.runUntil(func() bool { all := w.get(second).Status.History; return len(all) > 0 && isFinished(all[0]) })
			w.createLock(nil)
			w.setIdentity(identity + second.String() + "/" + string(w.get(second).UID))
			w.create(upgradeConfig(upgrade))
			w.runTo(time.Minute)
			w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True ControlPlaneUpgraded"})
		})
	}
}

// The lock of an upgrade that disappears in mid-attempt, because another client removes its finalizer, is
// released at once.
func TestLockOfAnUpgradeThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilRequested()
	w.removeFinalizers(upgrade)
	w.remove(upgrade)
	w.RunFor(time.Minute)
	if holder := w.holder(); holder != "" {
		t.Errorf("%s has the lock", holder)
	}
}

// An upgrade whose status the API server always rejects does nothing, and keeps no other one from
// starting.
func TestRejectedUpgradeDoesNotKeepAnotherFromStarting(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name, nil)
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("VersionPinned")
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: invalid}.If(func(r simulation.Request) bool {
		return nameOf(r) == "patch UpgradeConfig/status" && r.Key == upgrade
	})
	w.pause()
	w.RunFor(time.Second)
	other := client.ObjectKey{Namespace: "team-b", Name: "other"}
	w.create(upgradeConfig(other, newTime(w.Now())))
	w.runUntil(func() bool { return w.isFinished(other) })
	if got := w.get(other).Status.History[0].Phase; got != history.PhaseUpgraded {
		t.Errorf("phase %s; %s", got, w.describe())
	}
}

func TestLostLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.Jump(time.Hour) // the window is over
	other := &lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"}
	w.setLockHolder(other)
	before := w.reconciles
	w.RunFor(30 * time.Minute)
	if reconciles := w.reconciles - before; reconciles > 40 {
		t.Errorf("%d reconciles in half an hour", reconciles)
	}
	if got := w.record().Phase; got != history.PhaseUpgrading {
		t.Errorf("the phase is %s; %s", got, w.describe())
	}
	w.setLockHolder(nil)
	w.runToCompletion()
}

func TestLostLockAndRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.Jump(time.Hour)
	w.clearStatus(upgrade)
	w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	before := w.reconciles
	w.RunFor(30 * time.Minute)
	if reconciles := w.reconciles - before; reconciles > 40 {
		t.Errorf("%d reconciles in half an hour", reconciles)
	}
	w.setLockHolder(nil)
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True AlreadyAtVersion", finished: true}) // no evidence was left
}

func TestLockIsReleasedIfTheCacheDoesNotShowItYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntil(func() bool { return w.Now().After(tenPast.Add(-time.Minute)) })
	w.Process.Lag("Lease", 10*time.Minute) // the cache shows a free lock
	w.Writes = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && w.holder() != "" {
			w.Writes = nil
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.runUntil(func() bool { return len(w.get(upgrade).Finalizers) > 0 })
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.RunFor(time.Minute)
	if len(w.get(upgrade).Finalizers) > 0 || w.holder() != "" {
		t.Errorf("something is held; %s", w.describe())
	}
}

func TestPostponedUpgradeReleasesTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.Writes = simulation.Fault{Outcome: simulation.CrashBefore}.If(func(r simulation.Request) bool {
		return nameOf(r) == "patch UpgradeConfig/status" && w.holder() != ""
	})
	w.runUntil(func() bool { return w.Lives > 1 })
	w.Writes = nil
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.RunFor(time.Minute)
	if cfg := w.get(upgrade); len(cfg.Finalizers) > 0 || w.holder() != "" {
		t.Errorf("something is held; %s", w.describe())
	}
}

func TestStaleCacheOfAReleasedLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.9" })) // not offered
	w.runTo(time.Minute)
	w.Process.Lag("Lease", 24*time.Hour) // the cache shows the lock as held from now on
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version = desired
		s.UpgradeAt = formatTime(w.Now())
	})
	w.RunFor(10 * time.Minute)
	if len(w.requestedVersions) > 0 {
		t.Errorf("requests: %q", w.requestedVersions)
	}
	if err := w.User.Get(t.Context(), upgrade, &upgradev1alpha1.UpgradeConfig{}); apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
