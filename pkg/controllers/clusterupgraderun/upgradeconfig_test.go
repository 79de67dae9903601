// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

func withUpgradeConfig(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.UpgradeConfig = &fleetv1beta1.UpgradeConfigTemplate{Type: "OSD", PDBForceDrainTimeout: new(int32(60))}
}

// upgradeConfig returns the UpgradeConfig of the cluster; nil if there is none.
func (w *world) upgradeConfig() *unstructured.Unstructured {
	if all := w.spoke.Objects("UpgradeConfig"); len(all) > 0 {
		return all[0]
	}
	return nil
}

// report has the operator of the cluster report a phase later.
func (w *world) report(d time.Duration, phase string, conditions ...string) {
	record := map[string]any{"version": target, "phase": phase}
	if phase == "Upgrading" || phase == "Upgraded" {
		status := "False"
		if len(conditions) == 0 {
			status = "True"
		}
		record["conditions"] = []any{
			map[string]any{"type": "StartedNotificationSent", "status": "True", "completeTime": "2026-03-01T12:00:00Z"},
			map[string]any{"type": "CommenceUpgrade", "status": status},
		}
	}
	w.reportRecord(d, record, conditions...)
}

// reportRecord has the operator of the cluster report a record and conditions later.
func (w *world) reportRecord(d time.Duration, record map[string]any, conditions ...string) {
	w.change(d, func() {
		config := w.upgradeConfig()
		if config == nil {
			return
		}
		config.Object["status"] = map[string]any{"observedGeneration": config.GetGeneration(), "history": []any{record}}
		for _, c := range conditions {
			w.spoke.SetCondition(config, c, "False", "Blocked", "the pre-checks fail", w.Now())
		}
	})
}

func TestRun_delivers_an_UpgradeConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script func(*world)
		state  fleetv1alpha1.ClusterUpgradeState
		reason string
		left   bool // the UpgradeConfig is left on the cluster
	}{
		"upgraded": {
			script: func(w *world) {
				w.report(time.Minute, "Pending")
				w.report(5*time.Minute, "Upgrading", "Progressing")
				w.report(10*time.Minute, "Upgrading")
				w.report(60*time.Minute, "Upgraded")
			},
			state: "Complete", reason: "Upgraded", left: true,
		},
		"upgraded, with a first report of one step": { // the agent reports a list of one item as that item
			script: func(w *world) {
				w.reportRecord(4*time.Minute, map[string]any{"version": target, "phase": "Upgrading", "conditions": []any{
					map[string]any{"type": "StartedNotificationSent", "status": "False"},
				}})
				w.report(5*time.Minute, "Upgrading", "Progressing")
				w.report(10*time.Minute, "Upgrading")
				w.report(60*time.Minute, "Upgraded")
			},
			state: "Complete", reason: "Upgraded", left: true,
		},
		"upgraded, with an error in between": {
			script: func(w *world) {
				w.report(5*time.Minute, "Upgrading")
				w.reportRecord(20*time.Minute, map[string]any{"version": target, "phase": "Unknown"})
				w.report(22*time.Minute, "Upgrading")
				w.reportRecord(30*time.Minute, map[string]any{"version": target, "phase": "Pending"})
				w.report(32*time.Minute, "Upgrading")
				w.report(60*time.Minute, "Upgraded")
			},
			state: "Complete", reason: "Upgraded", left: true,
		},
		"fails in its first step": {
			script: func(w *world) {
				first := []any{map[string]any{"type": "StartedNotificationSent", "status": "False"}}
				w.reportRecord(5*time.Minute, map[string]any{"version": target, "phase": "Upgrading", "conditions": first})
				w.reportRecord(20*time.Minute, map[string]any{"version": target, "phase": "Failed", "conditions": first})
			},
			state: "Failed", reason: "ClusterVersionFailing",
		},
		"fails": {
			script: func(w *world) {
				w.report(5*time.Minute, "Upgrading")
				w.report(20*time.Minute, "Failed")
			},
			state: "Failed", reason: "ClusterVersionFailing", left: true,
		},
		"refused":     {script: func(w *world) { w.report(time.Minute, "Pending", "Accepted") }, state: "Failed", reason: "TargetRefused"},
		"never begun": {script: func(w *world) { w.report(time.Minute, "Pending") }, state: "Failed", reason: "ClusterUpgradeTimedOut"},
		"held before its commit": {
			script: func(w *world) { w.report(time.Minute, "Upgrading", "Progressing") }, state: "Failed", reason: "ClusterUpgradeTimedOut",
		},
		"held before its commit, after its first step": {
			script: func(w *world) {
				w.reportRecord(5*time.Minute, map[string]any{"version": target, "phase": "Upgrading", "conditions": []any{
					map[string]any{"type": "StartedNotificationSent", "status": "True"},
				}})
			},
			state: "Failed", reason: "ClusterUpgradeTimedOut",
		},
		"never complete": {
			script: func(w *world) { w.report(time.Minute, "Upgrading") }, state: "Failed", reason: "ClusterUpgradeTimedOut", left: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withUpgradeConfig)
			w.spoke.RawJSON = true
			w.admit()
			tc.script(w)
			w.settle(5 * time.Hour)
			w.expect(tc.state, tc.reason)
			if w.spoke.Desired() != "" {
				t.Error("the ClusterVersion is changed")
			}
			if left := w.upgradeConfig() != nil; left != tc.left {
				t.Errorf("the UpgradeConfig is left: %t, want %t", left, tc.left)
			}
			w.expectQuiet()
		})
	}
}

func TestRun_withdraws_an_UpgradeConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withUpgradeConfig)
	w.holdAgent(upgradeWork)
	w.admit()
	w.RunFor(5 * time.Minute)
	w.Delete(w.run())
	w.RunFor(time.Minute)
	w.releaseAgent()
	w.RunFor(time.Hour)
	if w.run() != nil || w.upgradeConfig() != nil {
		t.Errorf("UpgradeConfig %v; %s", w.upgradeConfig(), w.describe())
	}
	w.expectNoWorks()
}

// TestRun_cancelled_with_an_UpgradeConfig removes it before it is delivered, and never after: the operator of
// the cluster may have begun.
func TestRun_cancelled_with_an_UpgradeConfig(t *testing.T) {
	t.Parallel()
	for name, delivered := range map[string]bool{"before it is applied": false, "after it is applied": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withUpgradeConfig)
			if !delivered {
				w.holdAgent(upgradeWork)
			}
			w.admit()
			w.RunFor(5 * time.Minute)
			if created := w.upgradeConfig() != nil; created != delivered {
				t.Fatalf("the UpgradeConfig exists: %t", created)
			}
			w.editUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.Cancelled = true })
			w.RunFor(time.Minute)
			w.releaseAgent()
			w.report(0, "Pending")
			w.report(10*time.Minute, "Upgrading")
			w.report(60*time.Minute, "Upgraded")
			w.settle(5 * time.Hour)
			if delivered {
				w.expect(fleetv1alpha1.StateComplete, "Upgraded")
			} else {
				w.expect(fleetv1alpha1.StateFailed, "Cancelled")
			}
			if left := w.upgradeConfig() != nil; left != delivered {
				t.Errorf("the UpgradeConfig is left: %t", left)
			}
			w.expectQuiet()
		})
	}
}

// The time of an UpgradeConfig is its delivery: the window of the cluster's operator (30 minutes) must not be over before.
func TestUpgradeConfig_after_a_long_pre_action(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withUpgradeConfig, actions)
	w.change(50*time.Minute, func() { w.jobs = map[string]string{"backup": "Complete"} })
	w.admit(func(run *fleetv1alpha1.ClusterUpgradeRunSpec) { run.Timeouts.Action = "2h" })
	w.Must(w.RunUntil(3*time.Hour, func() bool { return w.upgradeConfig() != nil }))
	at, _, _ := unstructured.NestedString(w.upgradeConfig().Object, "spec", "upgradeAt")
	started, err := time.Parse(time.RFC3339, at)
	if err != nil || w.Now().Sub(started) > time.Minute {
		t.Errorf("delivered at %s with upgradeAt %s", w.Now(), at)
	}
}
