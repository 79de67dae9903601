// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// isFinished reports whether the attempt is finished and neither finalizer nor lock is held.
func (w *world) isFinished(key client.ObjectKey) bool {
	cfg := w.get(key)
	return len(cfg.Status.History) > 0 && isFinished(cfg.Status.History[0]) && len(cfg.Finalizers) == 0 && w.holder() == ""
}

// runToCompletion runs the upgrade until it is finished, and checks what holds of each that succeeds.
func (w *world) runToCompletion() {
	w.TB.Helper()
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	record := w.get(upgrade).Status.History[0]
	if record.Phase != history.PhaseUpgraded {
		w.TB.Fatalf("the phase is %s; %s", record.Phase, w.describe())
	}
	if len(w.requestedVersions) != 1 || w.requestedVersions[0] != desired {
		w.TB.Errorf("requests: %q", w.requestedVersions)
	}
	for _, reason := range []string{"UpgradeStarted", "UpgradeCompleted"} {
		if n := w.events(reason); n != 1 {
			w.TB.Errorf("%d Events %s", n, reason)
		}
	}
	for step, n := range w.completions {
		if n != 1 {
			w.TB.Errorf("the completion of %s was recorded %d times", step, n)
		}
	}
}

// upgradeWrites returns the writes of an upgrade without faults.
func upgradeWrites(t *testing.T) *simulation.WriteLog {
	t.Helper()
	log := &simulation.WriteLog{}
	w := newWorld(t, upgradeConfig(upgrade))
	w.Writes = log.Plan
	w.runToCompletion()
	if len(log.Writes) < 20 {
		t.Fatalf("only these writes: %s", log.Writes)
	}
	return log
}

// exceptEvents returns the numbers of the writes without Events.
func exceptEvents(log *simulation.WriteLog) []int {
	var numbers []int
	for _, write := range log.Writes {
		if write.Kind != "Event" {
			numbers = append(numbers, write.Write)
		}
	}
	return simulation.Sampled(numbers)
}

func TestUpgradeSurvivesFaultsOfItsWrites(t *testing.T) {
	t.Parallel()
	for _, fault := range upgradeWrites(t).Faults() {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.Writes = fault.Plan
			w.runToCompletion()
		})
	}
}

// TestUpgradeSurvivesALaggingCache keeps the changes of a kind from the cache for a minute and a
// half after each write, while other events cause reconciles.
func TestUpgradeSurvivesALaggingCache(t *testing.T) {
	t.Parallel()
	writes := upgradeWrites(t)
	for name, c := range map[string]struct {
		behind  []string
		outcome simulation.Outcome
	}{
		"UpgradeConfigs from write %d":              {behind: []string{"UpgradeConfig"}},
		"UpgradeConfigs from write %d, answer lost": {behind: []string{"UpgradeConfig"}, outcome: simulation.LoseAnswer},
		"lock from write %d":                        {behind: []string{"Lease"}},
		"ClusterVersion from write %d":              {behind: []string{"ClusterVersion"}},
		"all from write %d":                         {behind: []string{"UpgradeConfig", "ClusterVersion", "ClusterOperator", "MachineConfigPool", "Node", "Lease"}},
	} {
		for _, n := range exceptEvents(writes) {
			t.Run(fmt.Sprintf(name, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.Writes = func(r simulation.Request) simulation.Fault {
					if r.Write == n {
						w.lag(90*time.Second, c.behind...)
						return simulation.Fault{Outcome: c.outcome}
					}
					return simulation.Fault{}
				}
				w.runToCompletion()
			})
		}
	}
}

// lag keeps the changes of kinds from the cache, and causes reconciles in that time.
func (w *world) lag(d time.Duration, kinds ...string) {
	for _, kind := range kinds {
		w.Process.Lag(kind, d)
	}
	for _, at := range []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		w.After(at, func() { w.enqueue(upgrade) })
	}
}

// TestUpgradeSurvivesTheLossOfItsRecord removes the status after each write.
func TestUpgradeSurvivesTheLossOfItsRecord(t *testing.T) {
	t.Parallel()
	for _, n := range exceptEvents(upgradeWrites(t)) {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Write == n {
					w.After(0, func() {
						w.clearStatus(upgrade)
					})
				}
				return simulation.Fault{}
			}
			w.runToCompletion()
		})
	}
}

// TestDeletionAfterEachWrite checks that nothing hangs and nothing is left behind.
func TestDeletionAfterEachWrite(t *testing.T) {
	t.Parallel()
	for _, n := range simulation.Sample(len(upgradeWrites(t).Writes)) {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			var (
				commenced bool
				deleted   time.Time
			)
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Write == n {
					w.After(0, func() {
						commenced = w.cluster.ClusterVersion().Status.History[0].Version == desired
						deleted = w.remove(upgrade)
					})
				}
				return simulation.Fault{}
			}
			w.runUntil(func() bool { return !w.exists(upgrade) })
			if len(w.errors) > 0 {
				t.Errorf("errors: %v", w.errors)
			}
			if gone := w.Now(); gone.Sub(deleted) > 5*time.Second {
				t.Errorf("deleted at %s, gone at %s", deleted, gone)
			}
			if holder := w.holder(); holder != "" && len(w.requestedVersions) > 0 {
				t.Errorf("the lock is still held by %q", holder)
			}
			w.RunFor(time.Hour)
			if requested := w.cluster.ClusterVersion().Spec.DesiredUpdate != nil; requested != commenced {
				t.Errorf("commenced: %t, still requested: %t", commenced, requested)
			}
			if moved := w.cluster.ClusterVersion().Status.History[0].Version == desired; moved != commenced {
				t.Errorf("commenced when it was deleted: %t, in the end: %t", commenced, moved)
			}
		})
	}
}
