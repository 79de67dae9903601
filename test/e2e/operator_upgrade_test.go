// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

// TestOperator_is_upgraded_in_mid_upgrade replaces the operator by another build with a changed
// runbook, while an upgrade waits for the control plane. Replicas of both builds run for a while, as
// they do during a rollout. The records of the former build stay, and nothing is done twice.
func TestOperator_is_upgraded_in_mid_upgrade(t *testing.T) {
	t.Parallel()
	next := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", next, "./testdata/changed-runbook")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the operator with a changed runbook: %v\n%s", err, out)
	}
	cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(1), Monitoring: &alerting.Spec{}})
	userClient := newUserClient(t, cluster)
	former := startOperator(t, cluster, devcluster.OperatorOptions{Config: "alerts: {interval: 1s}", Replicas: 2})
	electedAmong(t, former)
	latter := startOperator(t, cluster, devcluster.OperatorOptions{Config: "alerts: {interval: 1s}", Replicas: 2, Program: next})

	before := clusterVersion(t, userClient).Generation
	upgrade := applyUpgrade(t, userClient, upgradeTo("4.20.6"))
	var atHandover *history.Record
	follow(t, userClient, upgrade, func(record *history.Record) {
		if atHandover == nil && record.Step("ControlPlaneUpgraded").StartTime != nil {
			if err := former.Stop(); err != nil {
				t.Error(err)
			}
			atHandover = currentRecord(t, userClient, upgrade)
		}
	})
	if t.Failed() {
		return
	}

	after := currentRecord(t, userClient, upgrade)
	for _, recorded := range atHandover.Conditions {
		if recorded.CompleteTime == nil {
			continue
		}
		if diff := cmp.Diff(recorded, after.Step(recorded.Type)); diff != "" {
			t.Errorf("the finished step %s has changed (-before +after):\n%s", recorded.Type, diff)
		}
	}
	renamed := after.Step("ControlPlaneReplaced")
	if started := atHandover.Step("ControlPlaneUpgraded").StartTime; atHandover.Step("ControlPlaneUpgraded").CompleteTime != nil || !renamed.StartTime.Equal(started) {
		t.Errorf("the step that was renamed while it was running is %+v, want it to have started at %s", renamed, started)
	}
	for step, want := range map[string]string{"AddedBeforeTheCommit": "AddedLater", "AddedAtTheEnd": "Done", "ControlPlaneUpgraded": "", "PostUpgradeProcedures": ""} {
		if got := after.Step(step).Reason; got != want {
			t.Errorf("step %s has the reason %q, want %q", step, got, want)
		}
	}
	if !after.StartTime.Equal(atHandover.StartTime) || !after.CommenceTime.Equal(atHandover.CommenceTime) || after.Attempt != atHandover.Attempt {
		t.Errorf("the attempt is %+v, and was %+v", after, atHandover)
	}
	if changed := clusterVersion(t, userClient).Generation - before; changed != 1 {
		t.Errorf("the spec of the ClusterVersion changed %d times, want 1", changed)
	}
	var events corev1.EventList
	if err := userClient.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"UpgradeStarted", "UpgradeCompleted"} {
		if got := notifications(aftermath.Of(upgrade), events.Items, reason, "4.20.6"); got != 1 {
			t.Errorf("%d notifications %s, want 1", got, reason)
		}
	}
	checkAftermath(t, cluster, latter)
}

// TestOperator_with_CRDs_of_another_version upgrades a cluster whose UpgradeConfigs have fields of a later
// version, and one whose UpgradeConfigs lack what records have got over time. The API server drops what
// its CRD does not have, and the operator neither writes it over and over nor stops.
func TestOperator_with_CRDs_of_another_version(t *testing.T) {
	t.Parallel()
	later := map[string]any{"type": "string"}
	for name, tc := range map[string]struct {
		change func(spec, status map[string]any)
		check  func(t *testing.T, stored *unstructured.Unstructured)
	}{
		"later CRDs": {
			change: func(spec, status map[string]any) { spec["later"], status["later"] = later, later },
			check: func(t *testing.T, stored *unstructured.Unstructured) {
				t.Helper()
				for _, part := range []string{"spec", "status"} {
					if value, _, _ := unstructured.NestedString(stored.Object, part, "later"); value != "kept" {
						t.Errorf("%s.later is %q, want what another client has written", part, value)
					}
				}
			},
		},
		"earlier CRDs": {
			change: func(spec, status map[string]any) {
				delete(spec, "paused")
				delete(status, "nextTime")
				record := properties(status, "history")
				for _, field := range []string{"channels", "notifiedTime", "precedingChannel", "previousAttempts", "workerStartTime", "workerCompleteTime"} {
					delete(record, field)
				}
				step := properties(record, "conditions")
				for _, field := range []string{"items", "lastAnswer", "lastProbeTime", "reasonTime"} {
					delete(step, field)
				}
			},
			check: func(t *testing.T, stored *unstructured.Unstructured) {
				t.Helper()
				if at, found, _ := unstructured.NestedString(stored.Object, "status", "nextTime"); found {
					t.Errorf("status.nextTime is %s: the API server has a later CRD", at)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(1), Monitoring: &alerting.Spec{}})
			userClient := newUserClient(t, cluster)
			changeSchema(t, userClient, tc.change)
			operator := startOperator(t, cluster, devcluster.OperatorOptions{Config: "alerts: {interval: 1s}"})
			upgrade := applyUpgrade(t, userClient, upgradeTo("4.20.6"))
			for _, patch := range []func(client.Object, client.Patch) error{
				func(o client.Object, p client.Patch) error { return userClient.Patch(t.Context(), o, p) },
				func(o client.Object, p client.Patch) error { return userClient.Status().Patch(t.Context(), o, p) },
			} {
				kept := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"later":"kept"},"status":{"later":"kept"}}`))
				if err := patch(upgrade.DeepCopy(), kept); err != nil {
					t.Fatal(err)
				}
			}
			follow(t, userClient, upgrade, func(*history.Record) {})
			checkAftermath(t, cluster, operator)

			began := time.Now()
			sleep(t, 10*time.Second)
			if quiet := requests(t, cluster, began); len(quiet) > 0 {
				t.Errorf("the operator made %d requests after the upgrade, want none: %v", len(quiet), quiet[0].operation())
			}
			stored := &unstructured.Unstructured{}
			stored.SetGroupVersionKind(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig"))
			if err := userClient.Get(t.Context(), client.ObjectKeyFromObject(upgrade), stored); err != nil {
				t.Fatal(err)
			}
			tc.check(t, stored)
		})
	}
}

// changeSchema changes the schema of UpgradeConfigs, and returns once the API server serves it.
func changeSchema(t *testing.T, userClient client.Client, change func(spec, status map[string]any)) {
	t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	key := client.ObjectKey{Name: "upgradeconfigs.upgrade.managed.openshift.io"}
	if err := userClient.Get(t.Context(), key, crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("the CRD has %d versions, want one: %v", len(versions), err)
	}
	schema, _, err := unstructured.NestedFieldNoCopy(versions[0].(map[string]any), "schema", "openAPIV3Schema")
	if err != nil {
		t.Fatal(err)
	}
	root := schema.(map[string]any)["properties"].(map[string]any)
	change(properties(root, "spec"), properties(root, "status"))
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := userClient.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
}

// properties returns the fields of an object, or of the elements of a list.
func properties(of map[string]any, field string) map[string]any {
	schema := of[field].(map[string]any)
	if items, is := schema["items"].(map[string]any); is {
		schema = items
	}
	return schema["properties"].(map[string]any)
}

// currentRecord returns the newest record of an upgrade.
func currentRecord(t *testing.T, userClient client.Client, upgrade *upgradev1alpha1.UpgradeConfig) *history.Record {
	t.Helper()
	var current upgradev1alpha1.UpgradeConfig
	if err := userClient.Get(t.Context(), client.ObjectKeyFromObject(upgrade), &current); err != nil {
		t.Fatal(err)
	}
	return &current.Status.History[0]
}
