// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// Marks of other UpgradeJobs.
const (
	expired  = "other/1/2026-02-01T22:00:00Z/2026-02-01T23:00:00Z"
	upcoming = "other/1/2026-03-01T15:00:00Z/2026-03-01T16:00:00Z"
)

// leave turns pool night into one that another UpgradeJob left paused, with outdated nodes.
func leave(w *world, mark string) {
	w.setPaused("night", true)
	w.setMark(mark)
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
		if pool.Name == "night" {
			pool.Status.UpdatedMachineCount = 0
			pool.Status.Conditions[0].Status = corev1.ConditionFalse
		}
	})
}

// end returns the phase and the failed steps.
func (w *world) end() string {
	parts := []string{}
	for _, record := range w.job().Status.History[:min(1, len(w.job().Status.History))] {
		parts = append(parts, string(record.Phase))
		for _, c := range record.Conditions {
			if c.Status == metav1.ConditionFalse && c.CompleteTime != nil {
				parts = append(parts, c.Type+" "+c.Reason)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// answer returns a hook that returns Wait until a time, and the given result after that.
func (w *world) answer(until time.Duration, then engine.Result) func(engine.Run) engine.Result {
	return func(run engine.Run) engine.Result {
		if at := w.start.Add(until); run.Now.Before(at) {
			return engine.WaitFor(at.Sub(run.Now), "HooksRunning", "hook x runs").WithItems(history.StepItem{Name: "Unpause/night/x", Status: "Running"})
		}
		return then
	}
}

type at struct {
	after time.Duration
	do    func(*world)
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const (
		paused   = "0s operator: night is paused, marked uid/1"
		released = "1h0m0s operator: night is unpaused"
		upgraded = "Upgraded"
	)
	passed := engine.Done("1 hook completed").WithItems(history.StepItem{Name: "Unpause/night", Status: "Completed"})
	failed := engine.Fail(maintenance.ReasonHookFailed, "hook x failed")
	for name, tc := range map[string]struct {
		setup  func(*world)
		script []at
		log    []string
		end    string
		rest   time.Duration // after the end
	}{
		"pool in its window": {log: []string{paused, released}, end: upgraded},
		"window of no length": {
			setup: func(w *world) { w.delays[0].Max = time.Hour }, log: []string{paused, released}, end: upgraded,
		},
		"window while the control plane is upgraded": {
			setup: func(w *world) { w.delays[0].Min = 5 * time.Minute },
			log:   []string{paused, "5m0s operator: night is unpaused"}, end: upgraded,
		},
		"several delays": {
			setup: func(w *world) {
				w.addPool("day", "day")
				w.delays = append(w.delays, pools.Delay{Selector: night("day"), Min: 3 * time.Hour, Max: 4 * time.Hour})
			},
			log: []string{"0s operator: day is paused, marked uid/1", paused, released, "3h0m0s operator: day is unpaused"}, end: upgraded,
		},
		"no delay": {setup: func(w *world) { w.delays = nil }, end: upgraded},
		"nothing to update": {
			setup: func(w *world) {
				w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
					if pool.Name == "night" {
						pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 0, 0
					}
				})
				w.hooks["before/night"] = func(engine.Run) engine.Result { return failed }
			},
			log: []string{paused, "11m0s operator: night is unpaused"}, end: upgraded,
		},
		"paused by a user before": {
			setup: func(w *world) { w.setPaused("night", true) }, script: []at{{10 * time.Minute, func(w *world) { w.setPaused("night", false) }}},
			log: []string{"10m0s user: night is unpaused", "10m0s operator: night is paused, marked uid/1", released}, end: upgraded,
		},
		"paused by a user until the window closes": {
			setup: func(w *world) { w.setPaused("night", true) }, end: "Failed, PoolsPaused WindowMissed",
		},
		"paused after the failure of another upgrade": {
			setup: func(w *world) { leave(w, "other/1/never/2026-02-01T22:00:00Z") }, end: "Failed, PoolsPaused WindowMissed",
		},
		"unpaused by a user": {
			script: []at{{30 * time.Minute, func(w *world) { w.setPaused("night", false) }}},
			log:    []string{paused, "30m0s user: night is unpaused, marked uid/1", "30m0s operator: night is unpaused"}, end: upgraded,
		},
		"unpaused and paused by a user, until the timeout": {
			setup: func(w *world) { w.timeout = 3 * time.Hour },
			script: []at{
				{5 * time.Minute, func(w *world) { w.setPaused("night", false) }},
				{6 * time.Minute, func(w *world) { w.setPaused("night", true) }},
			},
			log: []string{paused, "5m0s user: night is unpaused, marked uid/1", "5m0s operator: night is unpaused", "6m0s user: night is paused"},
			end: "Failed, DelayedPoolsUpdated TimedOut",
		},
		"unpaused by a user, and paused while it is updated": {
			script: []at{
				{30 * time.Minute, func(w *world) { w.setPaused("night", false) }},
				{31 * time.Minute, func(w *world) { w.setPaused("night", true) }},
			},
			log: []string{paused, "30m0s user: night is unpaused, marked uid/1", "30m0s operator: night is unpaused", "31m0s user: night is paused"},
			end: upgraded,
		},
		"mark removed by a user": {
			script: []at{
				{30 * time.Minute, func(w *world) { w.setMark("") }},
				{3 * time.Hour, func(w *world) { w.setPaused("night", false) }},
			},
			log: []string{paused, "30m0s user: night is paused", "3h0m0s user: night is unpaused"}, end: upgraded,
		},
		"mark replaced by a malformed one": {
			setup:  func(w *world) { w.timeout = 4 * time.Hour },
			script: []at{{30 * time.Minute, func(w *world) { w.setMark("uid/1/now") }}},
			log:    []string{paused, "30m0s user: night is paused, marked /0"}, end: "Failed, DelayedPoolsUpdated TimedOut",
		},
		"mark with an earlier window": {
			script: []at{{30 * time.Minute, func(w *world) { w.setMark("uid/1/2026-03-01T12:00:00Z/2026-03-02T12:00:00Z") }}},
			log:    []string{paused, released}, end: upgraded,
		},
		"undelayed pool that a user paused": {
			setup:  func(w *world) { w.setPaused("worker", true) },
			script: []at{{3 * time.Hour, func(w *world) { w.setPaused("worker", false) }}},
			log:    []string{paused, released, "3h0m0s user: worker is unpaused"}, end: upgraded,
		},
		"hook that takes ten minutes": {
			setup: func(w *world) { w.hooks["before/night"] = w.answer(70*time.Minute, passed) },
			log:   []string{paused, "1h10m0s operator: night is unpaused"}, end: upgraded,
		},
		"hook that ends after the window": {
			setup: func(w *world) { w.hooks["before/night"] = w.answer(121*time.Minute, passed) },
			log:   []string{paused}, end: "Failed, DelayedPoolsUpdated UnpausingPoolsExpired, PoolsReleased UnpausingPoolsExpired", rest: 24 * time.Hour,
		},
		"hook that fails": {
			setup: func(w *world) { w.hooks["before/night"] = w.answer(65*time.Minute, failed) },
			log:   []string{paused, "1h5m0s operator: night is paused, kept"}, end: "Failed, DelayedPoolsUpdated HookFailed", rest: 24 * time.Hour,
		},
		"hook that fails while the control plane is upgraded": {
			setup: func(w *world) {
				w.delays[0].Min = 5 * time.Minute
				w.hooks["before/night"] = func(engine.Run) engine.Result { return failed }
			},
			log: []string{paused, "5m0s operator: night is paused, kept"}, end: "Failed, DelayedPoolsUpdated HookFailed",
		},
		"hook after the update that fails": {
			setup: func(w *world) { w.hooks["after/night"] = w.answer(80*time.Minute, failed) },
			log:   []string{paused, released}, end: "Failed, DelayedPoolsUpdated HookFailed",
		},
		"pool that two entries select": {
			setup: func(w *world) {
				w.delays = append(w.delays, pools.Delay{Selector: night(), Min: 3 * time.Hour, Max: 4 * time.Hour})
			},
			end: "Failed, PoolsPaused InvalidPools",
		},
		"pool of the control plane": {
			setup: func(w *world) { w.delays[0].Selector = labels.Everything() }, end: "Failed, PoolsPaused InvalidPools",
		},
		"cancelled before the commit": {
			setup:  func(w *world) { w.holds = true },
			script: []at{{5 * time.Minute, func(w *world) { w.cancel = "deleted" }}},
			log:    []string{paused, "5m0s operator: night is unpaused"}, end: "Failed, UpgradeCommenced Cancelled",
		},
		"cancelled before the commit, while the machine config operator is down": {
			setup: func(w *world) { w.holds, w.cluster.PoolsIgnored = true, true },
			script: []at{{5 * time.Minute, func(w *world) { w.cancel = "deleted" }}, {50 * time.Minute, func(w *world) {
				w.cluster.PoolsIgnored = false
				w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) { pool.Labels = map[string]string{"name": pool.Name, "seen": ""} })
			}}},
			log: []string{paused, "50m0s operator: night is unpaused"}, end: "Failed, UpgradeCommenced Cancelled, PoolsReleased TimedOut", rest: 2 * time.Hour,
		},
		"cancelled before the commit, with nodes to be updated": {
			setup: func(w *world) {
				w.holds = true
				leave(w, expired)
			},
			script: []at{{5 * time.Minute, func(w *world) { w.cancel = "deleted" }}},
			log:    []string{paused, released}, end: "Failed, UpgradeCommenced Cancelled", rest: 2 * time.Hour,
		},
		"failed after the commit": {
			setup: func(w *world) { w.timeout = 30 * time.Minute },
			log:   []string{paused, released}, end: "Failed, DelayedPoolsUpdated TimedOut",
		},
		"failed after the commit, paused on failure": {
			setup: func(w *world) {
				w.timeout = 30 * time.Minute
				w.onFail = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpExists}}}
				w.addPool("day", "day")
			},
			log:  []string{paused, "30m0s operator: day is paused, kept", "30m0s operator: night is paused, kept"},
			end:  "Failed, DelayedPoolsUpdated TimedOut",
			rest: 24 * time.Hour,
		},
		"left paused by another upgrade": {
			setup: func(w *world) { leave(w, expired) }, log: []string{paused, released}, end: upgraded,
		},
		"left paused by another upgrade, not selected": {
			setup: func(w *world) { w.delays = nil; leave(w, expired) },
			log:   []string{"0s operator: night is unpaused"}, end: upgraded,
		},
		"left paused by another upgrade until later, not selected": {
			setup: func(w *world) { w.delays = nil; leave(w, upcoming) },
			log:   []string{"3h0m0s operator: night is unpaused"}, end: upgraded,
		},
		"left paused by another upgrade, with a hook that never ends": {
			setup: func(w *world) {
				w.delays, w.timeout = nil, 30*time.Minute
				leave(w, expired)
				w.hooks["before/night"] = w.answer(1000*time.Hour, passed)
			},
			end: "Failed, DelayedPoolsUpdated TimedOut, PoolsReleased TimedOut",
		},
		"deleted": {
			script: []at{{30 * time.Minute, func(w *world) {
				w.Delete(w.pool("night"))
			}}},
			log: []string{paused, "30m0s user: night is gone"}, end: upgraded,
		},
		"created after the pause": {
			script: []at{{5 * time.Minute, func(w *world) { w.addPool("night-2", "night") }}},
			log:    []string{paused, released}, end: upgraded,
		},
		"relabeled": {
			script: []at{{30 * time.Minute, func(w *world) {
				pool := w.pool("night")
				pool.Labels = nil
				w.Update(pool)
			}}},
			log: []string{paused, released}, end: upgraded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				if tc.setup != nil {
					tc.setup(w)
				}
			})
			for _, action := range tc.script {
				w.After(action.after, func() { action.do(w); w.Process.Enqueue(requestOfJob) })
			}
			w.runToEnd()
			w.RunFor(tc.rest)
			if diff := cmp.Diff(tc.log, w.log); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, w.record())
			}
			if got := w.end(); got != tc.end {
				t.Errorf("got %q, want %q\n%s", got, tc.end, w.record())
			}
		})
	}
}

func TestDelay_while_it_waits(t *testing.T) {
	t.Parallel()
	user := func(w *world) {
		w.addPool("user", "user")
		w.setPaused("user", true)
	}
	for name, tc := range map[string]struct {
		setup        func(*world)
		after        time.Duration
		step, reason string
		status       map[string]string
	}{
		"control plane": {
			after: 5 * time.Minute, step: "UpgradeCompleted", reason: "PoolsUpdating",
			status: map[string]string{"night": "Paused"},
		},
		"undelayed pools": {
			after: 12 * time.Minute, step: "UpgradeCompleted", reason: "PoolsUpdating",
			status: map[string]string{"night": "Paused"},
		},
		"window": {
			after: 30 * time.Minute, step: "DelayedPoolsUpdated", reason: "DelaySet",
			status: map[string]string{"night": "Paused"},
		},
		"hook": {
			setup: func(w *world) { w.hooks["before/night"] = w.answer(90*time.Minute, engine.Done("")) },
			after: 70 * time.Minute, step: "DelayedPoolsUpdated", reason: "ReleasingPools",
			status: map[string]string{"night": "Releasing"},
		},
		"nodes": {
			after: 62 * time.Minute, step: "DelayedPoolsUpdated", reason: "PoolsUpdating",
			status: map[string]string{"night": "Updating"},
		},
		"hook after the update": {
			setup: func(w *world) { w.hooks["after/night"] = w.answer(90*time.Minute, engine.Done("")) },
			after: 80 * time.Minute, step: "DelayedPoolsUpdated", reason: "ReleasingPools",
			status: map[string]string{"night": "Completed"},
		},
		"user": {
			setup: user, after: 90 * time.Minute, step: "UpgradeCompleted", reason: "PausedByUser",
			status: map[string]string{"night": "Completed"},
		},
		"window and user": {
			setup: func(w *world) {
				user(w)
				w.delays = append(w.delays, pools.Delay{Selector: night("user"), Min: 3 * time.Hour, Max: 4 * time.Hour})
				w.setPaused("user", false)
				w.After(5*time.Minute, func() { w.setPaused("user", false) })
				w.After(6*time.Minute, func() { w.setPaused("user", true) })
			},
			after: 30 * time.Minute, step: "DelayedPoolsUpdated", reason: "DelaySet",
			status: map[string]string{"night": "Paused", "user": "PausedByUser"},
		},
		"cleanup": {
			setup: func(w *world) { w.timeout = 20 * time.Minute }, after: 30 * time.Minute, step: "PoolsReleased", reason: "DelaySet",
			status: map[string]string{"night": "Paused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(w *world) {
				if tc.setup != nil {
					tc.setup(w)
				}
			})
			w.RunFor(tc.after)
			conditions := w.job().Status.History[0].Conditions
			last := conditions[len(conditions)-1]
			golden.Texts(t, "", last.Message)
			if last.Type != tc.step || last.Reason != tc.reason {
				t.Errorf("got %s %s: %s, want %s %s", last.Type, last.Reason, last.Message, tc.step, tc.reason)
			}
			if diff := cmp.Diff(tc.status, w.status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// While a hook runs, the steps are called when it requests that, rather than every few seconds.
func TestDelay_does_not_poll(t *testing.T) {
	t.Parallel()
	calls := 0
	w := newWorld(t, func(w *world) {
		hook := w.answer(100*time.Minute, engine.Done(""))
		w.hooks["before/night"] = func(run engine.Run) engine.Result { calls++; return hook(run) }
	})
	w.RunFor(62 * time.Minute)
	calls = 0
	w.RunFor(30 * time.Minute)
	if calls > 15 { // each heartbeat of the engine, and the change that it makes
		t.Errorf("the hook is called %d times in half an hour", calls)
	}
}

// The results of a pool's hooks stay in the record when the pool is released and the step
// continues.
func TestKeepReleasing_keeps_the_items_of_hooks(t *testing.T) {
	t.Parallel()
	passed := engine.Done("1 hook completed").WithItems(history.StepItem{Name: "Unpause/night", Status: "Completed"})
	w := newWorld(t, func(w *world) {
		w.delays[0].Min = 5 * time.Minute
		w.hooks["before/night"] = w.answer(6*time.Minute, passed)
	})
	w.runToEnd()
	for _, c := range w.job().Status.History[0].Conditions {
		if c.Type != "UpgradeCompleted" && c.Type != "DelayedPoolsUpdated" {
			continue
		}
		if diff := cmp.Diff([]history.StepItem{{Name: "Unpause/night", Status: "Completed"}}, c.Items); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Type, diff)
		}
	}
}

// The simulators of the cluster render, drain, and reboot like the real components.
func TestDelay_on_a_simulated_cluster(t *testing.T) {
	t.Parallel()
	w := newClusterWorld(t)
	reboots := map[string]time.Duration{} // first change of each node's configuration
	w.Observe(func(change simulation.Change) {
		before, isNode := change.Old.(*corev1.Node)
		after, _ := change.New.(*corev1.Node)
		if isNode && after != nil && before.Annotations[machineconfig.CurrentConfig] != after.Annotations[machineconfig.CurrentConfig] {
			reboots[after.Name] = w.Now().Sub(w.start)
		}
	})
	w.runToEnd()
	want := []string{"0s operator: night is paused, marked uid/1", "1h0m0s operator: night is unpaused"}
	if diff := cmp.Diff(want, w.log); diff != "" || w.end() != "Upgraded" || w.writes != 2 {
		t.Errorf("%s, %d writes (-want +got):\n%s\n%s", w.end(), w.writes, diff, w.record())
	}
	if len(reboots) != 6 {
		t.Errorf("nodes updated: %v", reboots)
	}
	for node, after := range reboots {
		if delayed := strings.HasPrefix(node, "night"); delayed != (after > time.Hour) {
			t.Errorf("node %s is updated after %s", node, after)
		}
	}
}
