// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A request that begins between the decision to end the upgrade and its withdrawal belongs to the upgrade.
func TestRequestThatBeginsWhileItIsWithdrawnIsAdopted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end       func(*world)
		continues bool
	}{
		"the window closes":   {end: func(w *world) { w.runTo(30*time.Minute - time.Second) }},
		"it is deleted":       {end: func(w *world) { w.remove(upgrade) }, continues: true},
		"the record was lost": {end: func(w *world) { w.clearStatus(upgrade); w.updateSpec(upgrade, newTime(tenPast.Add(24*time.Hour))) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			w.runUntilRequested()
			began := false
			w.Writes = func(r simulation.Request) simulation.Fault {
				if nameOf(r) == "patch ClusterVersion" && !began {
					began = true
					w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) {
						version.Status.History = append([]configv1.UpdateHistory{{Version: desired, State: configv1.PartialUpdate}}, version.Status.History...)
					})
				}
				return simulation.Fault{}
			}
			tc.end(w)
			w.RunFor(5 * time.Minute)
			if !began {
				t.Fatalf("nothing was withdrawn; %s", w.describe())
			}
			if failed := w.events("UpgradeFailed") + w.events("UpgradeCancelled"); failed > 0 {
				t.Errorf("%d Events say that the upgrade failed", failed)
			}
			if tc.continues {
				if w.exists(upgrade) || w.events("UpgradeContinues") != 1 {
					t.Errorf("exists: %t, %d Events UpgradeContinues", w.exists(upgrade), w.events("UpgradeContinues"))
				}
				return
			}
			if record := w.record(); record.Phase != history.PhaseUpgrading || record.CommenceTime == nil {
				t.Errorf("the phase is %s; %s", record.Phase, w.describe())
			}
		})
	}
}

func TestUpgradeStartedByAnotherClient(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cordonWorker(true)
		w.runUntilStep("PreHealthCheck")
		w.requestElsewhere(desired)
		w.RunFor(time.Minute)
		return w
	}
	t.Run("it is adopted", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.cordonWorker(false)
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
		if n := w.events("UpgradeFailed"); n > 0 {
			t.Errorf("%d notifications of a failure", n)
		}
	})
	t.Run("it continues without the object", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.remove(upgrade)
		w.RunFor(10 * time.Second)
		if w.exists(upgrade) || w.events("UpgradeContinues") != 1 {
			t.Errorf("there: %t; %s", w.exists(upgrade), w.describe())
		}
	})
}

func TestNothingToDo_requires_updated_pools(t *testing.T) {
	t.Parallel()
	t.Run("re-created object", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.cluster.WorkersDuration = 3 * time.Hour
		w.runUntilStep("AllWorkerNodesUpgraded")
		w.remove(upgrade)
		w.runUntil(func() bool { return !w.exists(upgrade) })
		w.create(upgradeConfig(upgrade))
		w.RunFor(10 * time.Minute)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True AllWorkerNodesUpgraded"})
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
	})
	t.Run("retry after a failure behind the commit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, upgradeConfig(upgrade))
		w.After(25*time.Minute, func() { w.cordonWorker(true) })
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False UnhealthyAfterUpgrade", finished: true})
		failed := w.record()
		w.updateSpec(upgrade, newTime(w.Now().Add(time.Minute)))
		w.RunFor(10 * time.Minute)
		w.expect(outcome{phase: history.PhaseUpgrading, condition: "Progressing=True PostClusterHealthCheck", message: "worker-0"})
		w.cordonWorker(false)
		w.runUntil(func() bool { return w.isFinished(upgrade) })
		w.expect(outcome{phase: history.PhaseUpgraded, condition: "Succeeded=True Upgraded", finished: true})
		want := []history.PreviousAttempt{{
			Attempt: 1, UpgradeAt: failed.UpgradeAt, Phase: history.PhaseFailed, Reason: "UnhealthyAfterUpgrade", Message: failed.Message,
			FailedStep: "PostClusterHealthCheck", StartTime: failed.StartTime, CommenceTime: failed.CommenceTime, CompleteTime: failed.CompleteTime,
		}}
		if diff := cmp.Diff(want, w.record().PreviousAttempts); diff != "" || failed.CommenceTime == nil {
			t.Errorf("previous attempts (-want +got):\n%s", diff)
		}
	})
}

// The update of another client is not the upgrade of an UpgradeConfig whose time has not come: it is not
// adopted, and no drain is forced for it. Once the time has come, it is.
func TestUpdateOfAnotherClientBeforeItsTime(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{"tomorrow": tenPast.Add(24 * time.Hour), "in ten minutes": tenPast} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, newTime(at)))
			w.cluster.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.Channel = w.get(upgrade).Spec.Desired.Channel })
			w.RunFor(time.Minute)
			w.requestElsewhere(desired)
			for !w.Now().After(tenPast.Add(-time.Minute)) {
				w.RunFor(30 * time.Second)
				if r := w.record(); r.InProgress() || len(w.get(upgrade).Finalizers) > 0 || w.holder() != "" {
					t.Fatalf("at %s, the upgrade has begun; %s", w.Now(), w.describe())
				}
			}
			phase := history.PhasePending
			if name == "tomorrow" { // its gates have not been evaluated
				phase = history.PhaseNew
			}
			w.expect(outcome{phase: phase, condition: "Progressing=False Scheduled"})
			if n := w.events("UpgradeStarted"); n != 0 {
				t.Errorf("%d notifications of an upgrade that has not started", n)
			}
			if h := w.cluster.ClusterVersion().Status.History[0]; h.Version != desired {
				t.Fatalf("the update of the other client has not begun: %+v", h)
			}
			if at.Equal(tenPast) {
				w.runTo(time.Minute)
				if !w.record().InProgress() || w.record().CommenceTime == nil {
					t.Errorf("the update is not adopted; %s", w.describe())
				}
			}
		})
	}
}

// A request that another client makes after a hold has withdrawn ours does not belong to the attempt.
func TestWithdrawnRequestIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	w.runUntilRequested()
	w.hold("maintenance")
	w.RunFor(time.Minute)
	if got := w.requested(); got != "" {
		t.Fatalf("the desired update is %q", got)
	}
	w.requestElsewhere(desired)
	w.Restart()
	w.runTo(time.Hour)
	if got := w.requested(); got != desired {
		t.Errorf("the desired update is %q; %s", got, w.describe())
	}
}
