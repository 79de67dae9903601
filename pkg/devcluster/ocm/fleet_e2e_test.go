// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// limit is how long a test waits for a condition. Only failures and large benchmarks get near it.
var limit = time.Minute

func await(tb testing.TB, what string, holds func(context.Context) bool) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(tb.Context(), 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		return holds(ctx), nil
	})
	if err != nil {
		tb.Fatalf("waiting until %s: %v", what, err)
	}
}

// startFleet starts a fleet that is stopped at the end of the test.
func startFleet(ctx context.Context, tb testing.TB, spec ocm.Spec) *ocm.Fleet {
	tb.Helper()
	f, err := ocm.Start(ctx, ocm.Options{Dir: tb.TempDir(), Repository: "../../..", Spec: spec})
	must(tb, err)
	tb.Cleanup(func() {
		if err := f.Stop(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// TestFleet starts a fleet. The real placement controller selects its clusters for the hub, and an
// agent responds to a work.
func TestFleet(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := startFleet(ctx, t, ocm.Spec{Clusters: 6, Canaries: 1, Groups: 2})
	hub, err := f.StartHub(ctx)
	must(t, err)
	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})

	t.Log("the hub selects the clusters")
	upgrade, err := ocm.NewUpgrade()
	must(t, err)
	upgrade.Spec.Paused = true
	must(t, f.Client.Create(ctx, upgrade))
	await(t, "the clusters are selected, in groups", func(ctx context.Context) bool {
		current := &fleetv1beta1.ManagedClustersUpgrade{}
		must(t, f.Client.Get(ctx, client.ObjectKeyFromObject(upgrade), current))
		s := &current.Status
		return s.ClustersSummery != nil && s.ClustersSummery.Total == 6 && s.CanaryClustersSummery != nil && s.CanaryClustersSummery.Total == 1 && len(s.Groups) >= 2
	})

	t.Log("an agent answers a work")
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "any"}})
	must(t, err)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: ocm.ClusterName(1), Name: "any"}}
	work.Spec.Workload.Manifests = make([]workv1.Manifest, 1)
	work.Spec.Workload.Manifests[0].Raw = manifest
	must(t, f.Client.Create(ctx, work))
	await(t, "the work is available", func(ctx context.Context) bool {
		must(t, f.Client.Get(ctx, client.ObjectKeyFromObject(work), work))
		return len(work.Status.Conditions) == 2 && len(work.Finalizers) == 1
	})
	must(t, f.Client.Delete(ctx, work))
	await(t, "the work is gone", func(ctx context.Context) bool {
		return f.Client.Get(ctx, client.ObjectKeyFromObject(work), work) != nil
	})
}
