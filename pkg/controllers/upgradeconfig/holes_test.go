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
)

// status is the first element of the history of the upgrade.
func (w *world) record() history.Record {
	w.t.Helper()
	cfg := w.get(upgrade)
	if len(cfg.Status.History) == 0 {
		w.t.Fatal("there is no history")
	}
	return cfg.Status.History[0]
}

// runUntilStep plays until a step is being taken, or is over.
func (w *world) runUntilStep(step string) {
	w.t.Helper()
	w.runUntil(func() bool {
		all := w.get(upgrade).Status.History
		return len(all) > 0 && find(all, all[0].Version, all[0].Attempt, step) != nil
	})
}

// runUntilRequested plays until the cluster version operator was asked for the target, and has not answered for a while.
func (w *world) runUntilRequested() {
	w.t.Helper()
	w.runUntil(func() bool {
		all := w.get(upgrade).Status.History
		if len(all) == 0 {
			return false
		}
		c := find(all, all[0].Version, all[0].Attempt, "CommenceUpgrade")
		return c != nil && c.Reason == "Requested"
	})
	w.runFor(time.Second)
}

func TestTheTargetIsWithdrawnAlsoIfTheRecordIsLostAndTheWindowHasClosed(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]func(*world){
		"the record is lost":                                    func(*world) {},
		"and the upgrade is paused":                             func(w *world) { w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }) },
		"and the cluster could not be read when it was noticed": func(w *world) { w.failReads(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.acceptDelay = 6 * time.Hour
			w.runUntilRequested()
			w.clearStatus(upgrade)
			w.jump(45 * time.Minute) // the machine was suspended
			during(w)
			w.restart()
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			if got := w.record(); got.Phase != history.PhaseFailed {
				t.Errorf("the phase is %s", got.Phase)
			}
			w.runFor(12 * time.Hour)
			if w.clusterVersion().Spec.DesiredUpdate != nil || w.clusterVersion().Status.History[0].Version == desired {
				t.Errorf("the upgrade began after it had been given up; %s", w.describe())
			}
		})
	}
}

// failReads lets no ClusterVersion be read for a while.
func (w *world) failReads(d time.Duration) {
	w.readError = func(kind string) error {
		if kind == "ClusterVersion" {
			return errors.New("not now")
		}
		return nil
	}
	w.after(d, func() {
		w.readError = nil
		w.dirty["ClusterVersion"] = true
		clear(w.cache["ClusterVersion"])
	})
}

func TestTheLockStaysWhileTheClusterOfALostRecordCannotBeRead(t *testing.T) {
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

func TestAnUpgradeWhoseLockWasTakenAwayDoesNotSpin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.jump(time.Hour) // the window is over
	other := lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"}
	w.setLockHolder(other)
	before := w.reconciles
	w.runFor(30 * time.Minute)
	if reconciles := w.reconciles - before; reconciles > 40 {
		t.Errorf("%d looks in half an hour", reconciles)
	}
	if got := w.record().Phase; got != history.PhaseUpgrading {
		t.Errorf("the phase is %s; %s", got, w.describe())
	}
	w.setLockHolder(lock.Holder{})
	w.runToCompletion()
}

func TestAnUpgradeThatLostItsLockAndItsRecordDoesNotSpin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("ControlPlaneUpgraded")
	w.jump(time.Hour)
	w.clearStatus(upgrade)
	w.setLockHolder(lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	before := w.reconciles
	w.runFor(30 * time.Minute)
	if reconciles := w.reconciles - before; reconciles > 40 {
		t.Errorf("%d looks in half an hour", reconciles)
	}
	w.setLockHolder(lock.Holder{})
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True AlreadyAtVersion", finished: true}) // no evidence was left
}

func TestTheLockIsReleasedAlsoIfTheCacheDoesNotShowItYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntil(func() bool { return w.clock.Now().After(tenPast.Add(-time.Minute)) })
	w.frozen["Lease"] = true // nobody has it, says the cache
	w.after(10*time.Minute, func() { delete(w.frozen, "Lease") })
	w.plan = func(_ int, what string) answer {
		if what == "patch UpgradeConfig/status" && w.holder() != "" {
			w.plan = nil
			return refused
		}
		return applied
	}
	w.runUntil(func() bool { return len(w.get(upgrade).Finalizers) > 0 })
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.runFor(time.Minute)
	if len(w.get(upgrade).Finalizers) > 0 || w.holder() != "" {
		t.Errorf("it is held on to; %s", w.describe())
	}
}

func TestTheEndOfAnUpgradeThatNeverBeganIsToldOnceEventsCanBeWritten(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]time.Duration{"at once": 0, "after three minutes": 3 * time.Minute, "never": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }))
			end := tenPast.Add(30*time.Minute + deaf)
			w.plan = func(_ int, what string) answer {
				if what == "create Event" && w.clock.Now().Before(end) {
					return refused
				}
				return applied
			}
			w.runUntil(func() bool { return len(w.get(upgrade).Status.History) > 0 && w.record().CompleteTime != nil })
			if late := w.clock.Now().Sub(tenPast.Add(30 * time.Minute)); late > time.Second {
				t.Errorf("the end was recorded %s late", late)
			}
			w.runFor(3 * time.Hour)
			want := 1
			if deaf > publishTimeout {
				want = 0
			}
			if got := w.events("WindowMissed"); got != want {
				t.Errorf("%d Events, want %d", got, want)
			}
			if len(w.due) > 0 {
				t.Errorf("somebody still wants to look: %v", w.due)
			}
		})
	}
}

func TestAnUpgradeGoesOnWithoutEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = func(_ int, what string) answer {
		if what == "create Event" {
			return refused
		}
		return applied
	}
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
	if held := w.clock.Now().Sub(record.CompleteTime.Time); held > publishTimeout+2*time.Minute {
		t.Errorf("the lock was held for %s after the end", held)
	}
}

func TestDeletionIsBoundedAlsoIfTheCleanUpCannotEnd(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*world){
		"the target cannot be withdrawn": func(w *world) {
			w.plan = func(_ int, what string) answer {
				if what == "patch ClusterVersion" {
					return refused
				}
				return applied
			}
		},
		"the cluster cannot be read": func(w *world) { w.failReads(24 * time.Hour) },
		"the cluster cannot be read, and the record is lost": func(w *world) {
			w.clearStatus(upgrade)
			w.failReads(24 * time.Hour)
		},
		"the status cannot be written": func(w *world) {
			w.plan = func(_ int, what string) answer {
				if what == "patch UpgradeConfig/status" {
					return refused
				}
				return applied
			}
		},
		"another has the lock": func(w *world) {
			w.setLockHolder(lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.unresponsive = false
			w.cluster.acceptDelay = 6 * time.Hour
			w.runUntilRequested()
			spoil(w)
			w.remove(upgrade)
			w.after(7*time.Minute+30*time.Second, func() { w.queue(upgrade) }) // a node has changed
			w.runUntil(func() bool { return !w.exists(upgrade) })
			took := w.clock.Now().Sub(w.deleted[upgrade].Time)
			if took < 9*time.Minute || took > 11*time.Minute {
				t.Errorf("it took %s", took)
			}
			if n := w.events("CancellationAbandoned"); n != 1 {
				t.Errorf("%d Events say so", n)
			}
		})
	}
}

func TestTheFinalizerWithoutARecordIsNoEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*v1alpha1.UpgradeConfigSpec)
		phase  history.Phase
	}{
		"the upgrade is still wanted":  {change: func(*v1alpha1.UpgradeConfigSpec) {}, phase: history.PhaseUpgraded},
		"it was put off":               {change: func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) }, phase: history.PhaseUpgraded},
		"its type is not known now":    {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Type = "ARO" }, phase: history.PhaseFailed},
		"its version is an older one":  {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.1" }, phase: history.PhaseFailed},
		"its version is no version":    {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "latest" }, phase: history.PhaseFailed},
		"its version is there already": {change: func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = installed }, phase: history.PhaseUpgraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.plan = func(_ int, what string) answer { // the process dies when the lock is taken and the finalizer set
				if what == "patch UpgradeConfig/status" && w.holder() != "" {
					return crashBefore
				}
				return applied
			}
			w.runUntil(func() bool { return w.processes > 1 })
			w.plan = nil
			if cfg := w.get(upgrade); len(cfg.Finalizers) == 0 || len(cfg.Status.History) > 0 && cfg.Status.History[0].StartTime != nil {
				t.Fatalf("this is not the moment that is meant; %s", w.describe())
			}
			w.updateSpec(upgrade, c.change)
			version := w.get(upgrade).Spec.Desired.Version
			w.runUntil(func() bool {
				return w.isFinished(upgrade) && w.record().Version == version && w.record().Phase == c.phase
			})
		})
	}
}

func TestAnUpgradePutOffLetsGoOfTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = func(_ int, what string) answer {
		if what == "patch UpgradeConfig/status" && w.holder() != "" {
			return crashBefore
		}
		return applied
	}
	w.runUntil(func() bool { return w.processes > 1 })
	w.plan = nil
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.UpgradeAt = formatTime(tenPast.Add(24 * time.Hour)) })
	w.runFor(time.Minute)
	if cfg := w.get(upgrade); len(cfg.Finalizers) > 0 || w.holder() != "" {
		t.Errorf("something is held until tomorrow; %s", w.describe())
	}
}

func TestDeletionDoesNotWaitForWhatIsOverToBeReviewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.plan = func(_ int, what string) answer { // so that the finalizer stays for a while after the end
		if what == "create Event" {
			return refused
		}
		return applied
	}
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

func TestNothingIsAskedForWithALockThatWasGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *v1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.9" })) // which is not offered
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	mine := w.lease(w.get(upgrade))
	w.frozen["Lease"] = true
	w.sync()
	stale := w.cache["Lease"]
	for key := range stale {
		stale[key] = mine
	}
	w.setLockHolder(lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
	w.updateSpec(upgrade, func(s *v1alpha1.UpgradeConfigSpec) {
		s.Desired.Version = desired
		s.UpgradeAt = formatTime(w.clock.Now())
	})
	w.runFor(10 * time.Minute)
	if len(w.requestedVersions) > 0 {
		t.Errorf("the cluster version operator was asked for %q", w.requestedVersions)
	}
	if err := w.api.Get(t.Context(), upgrade, &v1alpha1.UpgradeConfig{}); apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// slowWebhook is a webhook whose receiver takes nothing until so long after the end of the upgrade.
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
	if s.w.clock.Now().Before(s.w.record().CompleteTime.Add(s.down)) {
		return errors.New("the receiver is down")
	}
	return nil
}

func TestAReceiverThatIsDownHoldsUpNoUpgradeAndForAWhileTheNextOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ down, held time.Duration }{
		"it is there":             {-time.Second, 0},
		"it is back in a while":   {2 * time.Minute, 2 * time.Minute},
		"it is down for too long": {24 * time.Hour, publishTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.reconciler.lifecycle.Notifier.Webhook = slowWebhook{w, tc.down}
			w.runToCompletion()
			held := w.clock.Now().Sub(w.record().CompleteTime.Time)
			if held < tc.held || held > tc.held+2*time.Minute {
				t.Errorf("the lock was held for %s after the end, want %s or a little longer", held, tc.held)
			}
		})
	}
}
