// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/histories"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// TestFinalizersOfOtherClients_are_kept runs an upgrade of an object that has a finalizer missing
// from the cache.
func TestFinalizersOfOtherClients_are_kept(t *testing.T) {
	t.Parallel()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := simulation.New(simulation.WorldOptions{Definitions: definitions})
	cluster, err := openshift.New(w, openshiftsim.ClusterSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(histories.Operator(cluster, config.Default())); err != nil {
		t.Fatal(err)
	}
	const other = "example.com/other-client"
	cfg := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: histories.Namespace, Name: "upgrade", Finalizers: []string{other}},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: w.Now().UTC().Format(time.RFC3339), PDBForceDrainTimeout: new(int32(60)),
			Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
		},
	}
	if err := cluster.Client.Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	finalizers := func() []string {
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(cfg), cfg); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(slices.Values(cfg.Finalizers))
	}
	if err := w.RunUntil(time.Hour, func() bool { return slices.Equal(finalizers(), []string{other, upgradev1alpha1.Finalizer}) }); err != nil {
		t.Fatalf("while the upgrade is in progress: the finalizers are %q: %v", cfg.Finalizers, err)
	}
	err = w.RunUntil(6*time.Hour, func() bool {
		return slices.Equal(finalizers(), []string{other}) && cfg.Status.History[0].Phase == history.PhaseUpgraded
	})
	if err != nil {
		t.Fatalf("after the upgrade: the finalizers are %q: %v", cfg.Finalizers, err)
	}
}
