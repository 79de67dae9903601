// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

func start(t *testing.T, spec openshiftsim.ClusterSpec) *devcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	startTime := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(startTime).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

func version(t *testing.T, cluster *devcluster.Cluster) *configv1.ClusterVersion {
	t.Helper()
	found := &configv1.ClusterVersion{}
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: "version"}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// await polls until the ClusterVersion meets a condition. It fails with the last ClusterVersion.
func await(t *testing.T, cluster *devcluster.Cluster, what string, holds func(*configv1.ClusterVersion) bool) {
	t.Helper()
	eventually(t, func() string {
		last := version(t, cluster)
		if holds(last) {
			return ""
		}
		return fmt.Sprintf("waiting until %s; last seen: %s", what, describe(last))
	})
}

func describe(version *configv1.ClusterVersion) string {
	lines := []string{fmt.Sprintf("spec: %+v", version.Spec)}
	for _, entry := range version.Status.History {
		lines = append(lines, fmt.Sprintf("history: %s %s", entry.Version, entry.State))
	}
	for _, condition := range version.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	return strings.Join(lines, "\n")
}

func patch(t *testing.T, cluster *devcluster.Cluster, patch string) {
	t.Helper()
	object := version(t, cluster)
	if err := cluster.Client.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func condition(kind, status, reason string) func(*configv1.ClusterVersion) bool {
	return func(version *configv1.ClusterVersion) bool {
		for _, c := range version.Status.Conditions {
			if string(c.Type) == kind && string(c.Status) == status && c.Reason == reason {
				return true
			}
		}
		return false
	}
}

func history(entries ...string) func(*configv1.ClusterVersion) bool {
	return func(version *configv1.ClusterVersion) bool {
		var got []string
		for _, entry := range version.Status.History {
			got = append(got, entry.Version+" "+string(entry.State))
		}
		return strings.Join(got, ",") == strings.Join(entries, ",")
	}
}

func TestCluster_version_operator(t *testing.T) {
	t.Parallel()
	cluster := start(t, openshiftsim.ClusterSpec{Speed: 240, Releases: []updategraph.Release{
		{Version: "4.20.5", Channels: []string{"stable-4.20", "stable-4.21"}},
		{Version: "4.20.6", Channels: []string{"stable-4.20"}, Refused: "the signature does not verify"},
		{Version: "4.20.7", Channels: []string{"stable-4.20"}},
		{Version: "4.20.8", Channels: []string{"stable-4.20"}},
		{Version: "4.20.9", Channels: []string{"stable-4.20"}, Risks: []updategraph.Risk{{Name: "SlowDisks", Message: "Disks are slow.", URL: "https://example.com"}}},
		{Version: "4.21.0", Channels: []string{"stable-4.21"}},
	}})
	if diff := offered(version(t, cluster)); diff != "4.20.8 4.20.7 4.20.6 (4.20.9 SlowDisks)" {
		t.Fatalf("offered %s", diff)
	}

	patch(t, cluster, `{"spec":{"channel":"stable-4.21"}}`)
	await(t, cluster, "another channel offers other versions", func(v *configv1.ClusterVersion) bool { return offered(v) == "4.21.0" })
	patch(t, cluster, `{"spec":{"channel":"stable-4.99"}}`)
	await(t, cluster, "an unknown channel is reported", condition("RetrievedUpdates", "False", "VersionNotFound"))
	patch(t, cluster, `{"spec":{"channel":"stable-4.20"}}`)
	await(t, cluster, "the first channel offers what it did", condition("RetrievedUpdates", "True", ""))

	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.66"}}}`)
	await(t, cluster, "a version that is not offered is invalid", condition("Invalid", "True", "InvalidClusterVersion"))
	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.9"}}}`)
	await(t, cluster, "a conditional update wants its image, too", condition("Invalid", "True", "InvalidClusterVersion"))

	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.6"}}}`)
	await(t, cluster, "a refused release is not accepted", condition("ReleaseAccepted", "False", "RetrievePayload"))
	patch(t, cluster, `{"spec":{"desiredUpdate":null}}`)
	await(t, cluster, "the installed release is accepted again", condition("ReleaseAccepted", "True", "PayloadLoaded"))
	cluster.Catalog.Set(updategraph.Release{Version: "4.20.6", Channels: []string{"stable-4.20"}})
	time.Sleep(1500 * time.Millisecond) // three times as long as the simulator waits before it retries
	if got := version(t, cluster); !history("4.20.5 Completed")(got) {
		t.Fatalf("an update began that had been withdrawn: %s", describe(got))
	}

	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.7"}}}`)
	await(t, cluster, "an update begins", history("4.20.7 Partial", "4.20.5 Completed"))
	await(t, cluster, "it progresses", condition("Progressing", "True", "ClusterOperatorUpdating"))
	patch(t, cluster, `{"spec":{"desiredUpdate":{"version":"4.20.8"}}}`)
	await(t, cluster, "another one supersedes it", history("4.20.8 Partial", "4.20.7 Partial", "4.20.5 Completed"))
	if version(t, cluster).Status.History[1].CompletionTime == nil {
		t.Error("the superseded update has no completion time")
	}
	await(t, cluster, "it completes", history("4.20.8 Completed", "4.20.7 Partial", "4.20.5 Completed"))
	await(t, cluster, "it says so", condition("Progressing", "False", ""))
}

func offered(version *configv1.ClusterVersion) string {
	var names []string
	for _, update := range version.Status.AvailableUpdates {
		names = append(names, update.Version)
	}
	for _, update := range version.Status.ConditionalUpdates {
		names = append(names, "("+update.Release.Version+" "+update.Conditions[0].Reason+")")
	}
	return strings.Join(names, " ")
}
