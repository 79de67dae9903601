// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// twoDelays delays two pools, one of them with a hook, and releases one while the control plane is
// upgraded.
func twoDelays(w *world) {
	w.addPool("early", "early")
	w.delays = append(w.delays, pools.Delay{Selector: night("early"), Min: 5 * time.Minute, Max: time.Hour})
	w.hooks["before/night"] = w.answer(65*time.Minute, engine.Done("1 hook completed").WithItems(history.StepItem{Name: "Unpause/night", Status: "Completed"}))
}

// Each write of the operator fails once in every way. Each pool is still paused and released
// exactly once, at its time, and the upgrade completes.
func TestDelay_with_a_fault_at_every_write(t *testing.T) {
	t.Parallel()
	want := []string{
		"0s operator: early is paused, marked uid/1",
		"0s operator: night is paused, marked uid/1",
		"5m0s operator: early is unpaused",
		"1h5m0s operator: night is unpaused",
	}
	run := func(t *testing.T, plan simulation.FaultPlan) *world {
		t.Helper()
		w := newWorld(t, twoDelays, func(w *world) { w.Writes = plan })
		w.Observe(func(simulation.Change) {
			if len(w.log) == len(want) && !w.recorded("Unpause/night") {
				t.Error("the pool is released, but the result of its hook is not recorded")
			}
		})
		w.runToEnd()
		slices.Sort(w.log[:min(2, len(w.log))]) // both are paused at the same time
		if diff := cmp.Diff(want, w.log); diff != "" {
			t.Errorf("(-want +got):\n%s\n%s", diff, w.record())
		}
		if w.writes != 4 || w.end() != "Upgraded" {
			t.Errorf("%d writes of pools, %s\n%s", w.writes, w.end(), w.record())
		}
		return w
	}
	writes := 0
	run(t, func(r simulation.Request) simulation.Fault {
		writes = r.Write
		return simulation.Fault{}
	})
	lag := []string{"MachineConfigPool", "Node", "ClusterOperator", "ClusterVersion", "UpgradeJob"}
	for name, fault := range map[string]simulation.Fault{
		"crash before":           {Outcome: simulation.CrashBefore},
		"crash after":            {Outcome: simulation.CrashAfter},
		"lost answer":            {Outcome: simulation.LoseAnswer},
		"lost answer, old cache": {Outcome: simulation.LoseAnswer, Lag: lag, LagFor: 20 * time.Second},
		"conflict":               {Outcome: simulation.Conflict},
		"refused":                {Outcome: simulation.Refuse},
		"old cache":              {Lag: lag, LagFor: 30 * time.Second},
	} {
		for _, n := range simulation.Sample(writes) {
			t.Run(fmt.Sprintf("%s of write %d", name, n), func(t *testing.T) {
				t.Parallel()
				run(t, func(r simulation.Request) simulation.Fault {
					if r.Write == n {
						return fault
					}
					return simulation.Fault{}
				})
			})
		}
	}
}

// A pool that an entry selects only after the others were paused is paused before the point of no
// return, unless its release is already due.
func TestDelay_with_a_pool_that_is_added_before_the_commit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		add, commit time.Duration
		want        []string
	}{
		"in time": {
			5 * time.Minute, 10 * time.Minute,
			[]string{"0s operator: night is paused, marked uid/1", "5m0s operator: late is paused, marked uid/1", "1h0m0s operator: late is unpaused", "1h0m0s operator: night is unpaused"},
		},
		"once the others are released": {
			80 * time.Minute, 90 * time.Minute,
			[]string{"0s operator: night is paused, marked uid/1", "1h35m0s operator: night is unpaused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) { w.holds, w.commitWithin = true, 2*time.Hour })
			w.After(tc.add, func() { w.addPool("late", "night") })
			w.After(tc.commit, func() { w.holds = false })
			w.runToEnd()
			slices.Sort(w.log[min(2, len(w.log)):]) // both are released at the same time
			if diff := cmp.Diff(tc.want, w.log); diff != "" || w.end() != "Upgraded" {
				t.Errorf("%s (-want +got):\n%s\n%s", w.end(), diff, w.record())
			}
		})
	}
}

// A user pauses or unpauses a pool between a read and a write of the operator.
func TestDelay_with_a_user_in_between(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write int // the number of the operator's write to the pool, from 1
		do    func(*world)
		log   []string
	}{
		"pauses the pool that is being paused": {
			1, func(w *world) { w.setPaused("night", true) },
			[]string{"0s user: night is paused", "20m0s user: night is unpaused", "20m0s operator: night is paused, marked uid/1", "1h0m0s operator: night is unpaused"},
		},
		"removes the mark of the pool that is being released": {
			2, func(w *world) { w.setMark("") },
			[]string{"0s operator: night is paused, marked uid/1", "1h0m0s user: night is paused", "1h20m0s user: night is unpaused"},
		},
		"unpauses the pool that is being released": {
			2, func(w *world) { w.setPaused("night", false) },
			[]string{"0s operator: night is paused, marked uid/1", "1h0m0s user: night is unpaused, marked uid/1", "1h0m0s operator: night is unpaused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			writes := 0
			w := newWorld(t)
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Kind != "MachineConfigPool" {
					return simulation.Fault{}
				}
				if writes++; writes == tc.write {
					tc.do(w)
					w.After(20*time.Minute, func() { w.setPaused("night", false) })
				}
				return simulation.Fault{}
			}
			w.runToEnd()
			if diff := cmp.Diff(tc.log, w.log); diff != "" || w.end() != "Upgraded" {
				t.Errorf("%s (-want +got):\n%s\n%s", w.end(), diff, w.record())
			}
		})
	}
}

// While one pool cannot be paused, a user unpauses another one. That one is not paused again.
func TestPause_does_not_undo_that_a_user_unpauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, twoDelays, func(w *world) {
		w.Writes = simulation.Fault{Outcome: simulation.Refuse}.If(func(r simulation.Request) bool {
			return r.Kind == "MachineConfigPool" && r.Key.Name == "early" && w.Now().Before(w.start.Add(10*time.Minute))
		})
		w.After(4*time.Minute, func() { w.setPaused("night", false) })
	})
	w.RunFor(12 * time.Minute)
	paused := slices.DeleteFunc(slices.Clone(w.log), func(change string) bool { return !strings.Contains(change, "night is paused") })
	if len(paused) != 1 || w.pool("night").Spec.Paused {
		t.Errorf("pool night is paused by %q, changes: %q\n%s", paused, w.log, w.record())
	}
}

// The response to a pause is lost, the cache does not show the pause, and the upgrade is canceled.
func TestRelease_with_an_old_cache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.Writes = func(r simulation.Request) simulation.Fault {
			if r.Kind != "MachineConfigPool" || w.cancel != "" {
				return simulation.Fault{}
			}
			w.cancel = "deleted"
			return simulation.Fault{Outcome: simulation.LoseAnswer, Lag: []string{"MachineConfigPool"}, LagFor: time.Hour}
		}
	})
	w.runToEnd()
	want := []string{"0s operator: night is paused, marked uid/1", "0s operator: night is unpaused"}
	if diff := cmp.Diff(want, w.log); diff != "" || w.end() != "Failed, PoolsPaused Cancelled" {
		t.Errorf("%s (-want +got):\n%s\n%s", w.end(), diff, w.record())
	}
}

// The API server shows that the upgrade has commenced, and the cache does not show it for ten minutes.
func TestRelease_with_a_cache_from_before_the_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) {
		w.live = true
		w.Writes = simulation.Fault{Lag: []string{"ClusterVersion"}, LagFor: 10 * time.Minute}.If(func(r simulation.Request) bool { return r.Kind == "ClusterVersion" })
	})
	w.runToEnd()
	want := []string{"0s operator: night is paused, marked uid/1", "1h0m0s operator: night is unpaused"}
	if diff := cmp.Diff(want, w.log); diff != "" || w.end() != "Upgraded" {
		t.Errorf("%s (-want +got):\n%s\n%s", w.end(), diff, w.record())
	}
}
