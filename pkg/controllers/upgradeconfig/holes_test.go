// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestLostRecordAfterTheWindow(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*world){
		"record lost":                     func(*world) {},
		"and upgrade paused":              (*world).pause,
		"and cluster unreadable at first": func(w *world) { w.failReads(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.clearStatus(upgrade)
			w.Jump(45 * time.Minute) // the machines were suspended
			during(w)
			w.restart()
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			if got := w.record(); got.Phase != history.PhaseFailed {
				t.Errorf("the phase is %s", got.Phase)
			}
			w.runFor(12 * time.Hour)
			if w.cluster.ClusterVersion().Spec.DesiredUpdate != nil || w.cluster.ClusterVersion().Status.History[0].Version == desired {
				t.Errorf("the upgrade commences after its end; %s", w.describe())
			}
		})
	}
}

func TestLostRecordKeepsTheLockWhileTheClusterIsUnreadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.clearStatus(upgrade)
	w.failReads(7 * time.Minute)
	w.create(upgradeConfig(client.ObjectKey{Namespace: "team-b", Name: "upgrade"}))
	w.runFor(6 * time.Minute)
	if !strings.Contains(w.holder(), "team-a") {
		t.Errorf("the lock is held by %q; %s", w.holder(), w.describe())
	}
	if got := w.record().Phase; got != history.PhaseUnknown {
		t.Errorf("the phase is %s", got)
	}
	w.runUntil(func() bool { return w.record().CompleteTime != nil })
	if got := w.record().Phase; got != history.PhaseUpgraded {
		t.Errorf("the phase is %s", got)
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
	w.runFor(30 * time.Minute)
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
	w.runFor(30 * time.Minute)
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
	w.process.Lag("Lease", 10*time.Minute) // the cache shows a free lock
	w.plan = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && w.holder() != "" {
			w.plan = nil
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.runUntil(func() bool { return len(w.get(upgrade).Finalizers) > 0 })
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.runFor(time.Minute)
	if len(w.get(upgrade).Finalizers) > 0 || w.holder() != "" {
		t.Errorf("something is held; %s", w.describe())
	}
}

func TestMissedWindowIsNotifiedOnceEventsCanBeWritten(t *testing.T) {
	t.Parallel()
	for when, outage := range map[string]time.Duration{"at once": 0, "after three minutes": 3 * time.Minute, "after two hours": 2 * time.Hour, "never": 48 * time.Hour} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }))
			end := tenPast.Add(30*time.Minute + outage)
			w.plan = func(r simulation.Request) simulation.Fault {
				if nameOf(r) == "create Event" && w.Now().Before(end) {
					return simulation.Fault{Outcome: simulation.Refuse}
				}
				return simulation.Fault{}
			}
			w.runUntil(func() bool { return len(w.get(upgrade).Status.History) > 0 && w.record().CompleteTime != nil })
			if late := w.Now().Sub(tenPast.Add(30 * time.Minute)); late > time.Second {
				t.Errorf("the end was recorded %s late", late)
			}
			w.runFor(25 * time.Hour)
			want := 1
			if outage > 24*time.Hour {
				want = 0
			}
			if got := w.events("WindowMissed"); got != want {
				t.Errorf("%d Events, want %d", got, want)
			}
			if err := w.RunUntil(7*24*time.Hour, func() bool { return false }); !errors.Is(err, simulation.ErrQuiet) {
				t.Errorf("reconciles are still requested: %v", err)
			}
		})
	}
}

func TestUpgradeWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = refuse("create Event")
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	record := w.record()
	if record.Phase != history.PhaseUpgraded {
		t.Errorf("the phase is %s; %s", record.Phase, w.describe())
	}
	for _, step := range []string{"StartedNotificationSent", "CompletedNotificationSent"} {
		if c := find(w.get(upgrade).Status.History, desired, 1, step); c == nil || c.Reason != "NotDelivered" {
			t.Errorf("%s: %+v", step, c)
		}
	}
	if held := w.Now().Sub(record.CompleteTime.Time); held > publishTimeout+2*time.Minute {
		t.Errorf("the lock was held for %s after the end", held)
	}
}

func TestDeletionIsBounded(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*world){
		"target cannot be withdrawn": func(w *world) { w.plan = refuse("patch ClusterVersion") },
		"cluster unreadable":         func(w *world) { w.failReads(24 * time.Hour) },
		"cluster unreadable and record lost": func(w *world) {
			w.clearStatus(upgrade)
			w.failReads(24 * time.Hour)
		},
		"status cannot be written": func(w *world) { w.plan = refuse("patch UpgradeConfig/status") },
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

func TestFinalizerWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*v1alpha1.UpgradeConfigSpec)
		phase  history.Phase
	}{
		"unchanged spec":    {change: func(*v1alpha1.UpgradeConfigSpec) {}, phase: history.PhaseUpgraded},
		"postponed":         {change: func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) }, phase: history.PhaseUpgraded},
		"unknown type":      {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Type = "ARO" }, phase: history.PhaseFailed},
		"downgrade":         {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" }, phase: history.PhaseFailed},
		"invalid version":   {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "latest" }, phase: history.PhaseFailed},
		"installed version": {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed }, phase: history.PhaseUpgraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.plan = func(r simulation.Request) simulation.Fault { // the lock is acquired and the finalizer set
				if nameOf(r) == "patch UpgradeConfig/status" && w.holder() != "" {
					return simulation.Fault{Outcome: simulation.CrashBefore}
				}
				return simulation.Fault{}
			}
			w.runUntil(func() bool { return w.lives > 1 })
			w.plan = nil
			if cfg := w.get(upgrade); len(cfg.Finalizers) == 0 || len(cfg.Status.History) > 0 && cfg.Status.History[0].StartTime != nil {
				t.Fatalf("unexpected state after the crash; %s", w.describe())
			}
			w.updateSpec(upgrade, c.change)
			version := w.get(upgrade).Spec.Desired.Version
			w.runUntil(func() bool {
				return w.isFinished(upgrade) && w.record().Version == version && w.record().Phase == c.phase
			})
		})
	}
}

func TestPostponedUpgradeReleasesTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && w.holder() != "" {
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		return simulation.Fault{}
	}
	w.runUntil(func() bool { return w.lives > 1 })
	w.plan = nil
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.runFor(time.Minute)
	if cfg := w.get(upgrade); len(cfg.Finalizers) > 0 || w.holder() != "" {
		t.Errorf("something is held; %s", w.describe())
	}
}

func TestDeletionOfAFinishedUpgradeReadsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = refuse("create Event")
	w.runUntil(func() bool { return w.get(upgrade).Status.History != nil && w.record().CompleteTime != nil })
	if len(w.get(upgrade).Finalizers) == 0 {
		t.Fatal("the finalizer is gone already")
	}
	w.plan, w.errors = nil, nil
	w.failReads(24 * time.Hour)
	w.remove(upgrade)
	w.runFor(time.Second)
	if w.exists(upgrade) || len(w.errors) > 0 {
		t.Errorf("errors %v; %s", w.errors, w.describe())
	}
}

// A backup of etcd has lower resource versions than what the operator wrote last, so its cache seems to
// be behind for ever: the operator says so after a minute, and the window does not pass.
func TestRestoredBackupIsNotifiedAndDoesNotMissTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runTo(-5 * time.Minute)
	backup := w.Backup()
	w.updateSpec(upgrade, newTime(tenPast.Add(time.Hour)))
	w.runTo(-time.Second)
	w.Restore(backup)
	w.runTo(2 * time.Minute)
	if n := w.events("StateRestored"); n != 1 {
		t.Errorf("%d notifications of the restore; %s", n, w.describe())
	}
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
	if at := w.record().StartTime; at.Sub(tenPast) > 2*time.Minute {
		t.Errorf("the upgrade started at %s", at)
	}
}

func TestStaleCacheOfAReleasedLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.9" })) // which is not offered
	w.runTo(time.Minute)
	w.process.Lag("Lease", 24*time.Hour) // the cache shows the lock as held from now on
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.setLockHolder(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) {
		s.Desired.Version = desired
		s.UpgradeAt = formatTime(w.Now())
	})
	w.runFor(10 * time.Minute)
	if len(w.requestedVersions) > 0 {
		t.Errorf("requests: %q", w.requestedVersions)
	}
	if err := w.client.Get(t.Context(), upgrade, &v1alpha1.UpgradeConfig{}); apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// slowWebhook is a webhook whose receiver is down until some time after the end of the upgrade.
type slowWebhook struct {
	w    *world
	down time.Duration
}

func (slowWebhook) Publish(context.Context, corev1.ObjectReference, engine.Notification) error {
	return nil
}

func (slowWebhook) PublishSteps(context.Context, corev1.ObjectReference, history.Record) error {
	return nil
}
func (slowWebhook) Reset(string) {}
func (s slowWebhook) PendingError(string) error {
	if s.w.Now().Before(s.w.record().CompleteTime.Add(s.down)) {
		return errors.New("the receiver is down")
	}
	return nil
}

func TestWebhookReceiverDown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ down, held time.Duration }{
		"up":                {-time.Second, 0},
		"back in a while":   {2 * time.Minute, 2 * time.Minute},
		"down for too long": {24 * time.Hour, publishTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.reconciler.lifecycle.Notifier.Webhook = slowWebhook{w, tc.down}
			w.runToCompletion()
			held := w.Now().Sub(w.record().CompleteTime.Time)
			if held < tc.held || held > tc.held+2*time.Minute {
				t.Errorf("the lock was held for %s after the end, want %s or a little longer", held, tc.held)
			}
		})
	}
}
