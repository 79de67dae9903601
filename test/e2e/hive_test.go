// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// TestHive_installs_what_the_manifests_install applies the SelectorSyncSet of hack/hive.sh to an API server
// that has Hive's kind, and compares what Hive would apply to a cluster with deploy.
func TestHive_installs_what_the_manifests_install(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.kubectl(t, "apply", "--filename=testdata/hive/selectorsyncsets.yaml")
	server.kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinition/selectorsyncsets.hive.openshift.io")
	script := exec.CommandContext(t.Context(), repository+"/hack/hive.sh", "example.com/operator:v9.9.9", "v9.9.9")
	script.Env = append(os.Environ(), "KUBECTL="+filepath.Join(server.BinDir(), "kubectl"))
	printed, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hive.yaml")
	if err := os.WriteFile(file, printed, 0o600); err != nil {
		t.Fatal(err)
	}
	server.kubectl(t, "apply", "--server-side", "--validate=strict", "--filename="+file)

	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hive.openshift.io/v1", "kind": "SelectorSyncSet"}}
	if err := server.client.Get(t.Context(), client.ObjectKey{Name: "managed-upgrade-operator"}, set); err != nil {
		t.Fatal(err)
	}
	resources, _, err := unstructured.NestedSlice(set.Object, "spec", "resources")
	if err != nil {
		t.Fatal(err)
	}
	const annotations = 256 << 10 // what an object may have; Hive stores there what it has applied
	var got []*unstructured.Unstructured
	for _, resource := range resources {
		text, err := json.Marshal(resource)
		if err != nil || len(text) > annotations {
			t.Errorf("a resource has %d bytes, too many for the annotation of an apply: %v", len(text), err)
		}
		// The installed image and the pages of the release differ from deploy.
		text = []byte(strings.NewReplacer("example.com/operator:v9.9.9", "managed-upgrade-operator:latest", "/blob/v9.9.9/", "/blob/main/").Replace(string(text)))
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(text, object); err != nil {
			t.Fatal(err)
		}
		got = append(got, object)
	}
	if diff := cmp.Diff(objectsByName(t, kustomized(t)), objectsByName(t, got)); diff != "" {
		t.Errorf("the manifests (-) and the resources of the SelectorSyncSet (+) differ:\n%s", diff)
	}
}

// TestHive_moves_a_cluster_to_the_next_wave applies to a cluster what Hive applies when its label changes:
// with the mode Upsert, during and after the upgrade of the former wave, and then with the mode Sync, where
// Hive deletes the objects of the former wave. A SelectorSyncSet without the applyBehavior of the template does
// not replace a commenced upgrade, either.
func TestHive_moves_a_cluster_to_the_next_wave(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(3)})
	userClient := newUserClient(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{})
	term := newTerminal(t, cluster, operator)
	first, second, third := wave(t, "4.20.6"), wave(t, "4.20.7"), wave(t, "4.20.8")
	hive := func(command, file, want string) {
		if printed := term.run(t.Context(), t, "oc "+command+" -f "+file); !strings.Contains(printed, want) {
			t.Errorf("oc %s prints %q, want %q", command, printed, want)
		}
	}
	apply := applyCommand(t)
	upgrade := func(version string) *upgradev1alpha1.UpgradeConfig {
		config := upgradeTo(version)
		config.Name = "managed-upgrade-config"
		return config
	}
	versions := func(config *upgradev1alpha1.UpgradeConfig) (all []string) {
		if err := userClient.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
			t.Fatal(err)
		}
		for _, record := range config.Status.History {
			all = append(all, record.Version+" "+string(record.Phase))
		}
		return all
	}

	hive(apply, first, "created")
	rejected, denied := false, false
	follow(t, userClient, upgrade("4.20.6"), func(record *history.Record) {
		if record.CompleteTime != nil {
			return
		}
		if !rejected && record.StartTime != nil {
			rejected = true
			hive(apply, second, "the upgrade is in progress")
		}
		if !denied && record.CommenceTime != nil {
			denied = true
			hive("apply --force", second, "first set its annotation "+upgradev1alpha1.AllowDeletionAnnotation)
		}
	})
	if !rejected || !denied {
		t.Errorf("while the upgrade was in progress, a change was applied: %t, and by force: %t", rejected, denied)
	}
	hive(apply, second, "configured")
	follow(t, userClient, upgrade("4.20.7"), func(*history.Record) {})
	if diff := cmp.Diff([]string{"4.20.7 Upgraded", "4.20.6 Upgraded"}, versions(upgrade("4.20.7"))); diff != "" {
		t.Errorf("the history after a move with Upsert (-want +got):\n%s", diff)
	}
	checkAftermath(t, cluster, operator)

	hive("delete", second, "deleted")
	hive(apply, third, "created")
	follow(t, userClient, upgrade("4.20.8"), func(*history.Record) {})
	if diff := cmp.Diff([]string{"4.20.8 Upgraded"}, versions(upgrade("4.20.8"))); diff != "" {
		t.Errorf("the history after a move with Sync, which loses the earlier ones (-want +got):\n%s", diff)
	}
}

// applyCommand returns the command that does what Hive does with the resources of the template: by default, it
// applies them by force, so it deletes and creates an object that it may not update.
func applyCommand(t *testing.T) string {
	t.Helper()
	var processed struct {
		Items []struct {
			Spec struct {
				ApplyBehavior string `json:"applyBehavior"`
			} `json:"spec"`
		} `json:"items"`
	}
	mustSucceed(t, json.Unmarshal(processTemplate(t, "NAME=a", "VERSION=4.20.6", "CHANNEL="+channel, "UPGRADE_AT=2030-01-31T01:00:00Z"), &processed))
	if processed.Items[0].Spec.ApplyBehavior == "CreateOrUpdate" {
		return "apply"
	}
	return "apply --force"
}

// wave returns the file of the UpgradeConfig that a wave of the template for Hive distributes.
func wave(t *testing.T, version string) string {
	t.Helper()
	var processed struct {
		Items []struct {
			Spec struct {
				Resources []json.RawMessage `json:"resources"`
			} `json:"spec"`
		} `json:"items"`
	}
	at := time.Now().UTC().Format(time.RFC3339)
	err := json.Unmarshal(processTemplate(t, "NAME="+version, "VERSION="+version, "CHANNEL="+channel, "UPGRADE_AT="+at), &processed)
	if err != nil || len(processed.Items) != 1 || len(processed.Items[0].Spec.Resources) != 1 {
		t.Fatalf("the template has %d objects, want one with one resource: %v", len(processed.Items), err)
	}
	file := filepath.Join(t.TempDir(), "upgradeconfig.json")
	if err := os.WriteFile(file, processed.Items[0].Spec.Resources[0], 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
