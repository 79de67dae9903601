// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

func TestOperatorUpgradesASimulatedCluster(t *testing.T) {
	t.Parallel()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var log []string
	w := simulation.New(simulation.WorldOptions{Definitions: definitions, Log: func(line string) { log = append(log, line) }})
	defer func() {
		if t.Failed() {
			for _, line := range log {
				t.Log(line)
			}
		}
	}()
	changes := 0
	w.Observe(func(simulation.Change) { changes++ })
	cluster, err := openshift.New(w, openshiftsim.ClusterSpec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed after %s, %d changes", time.Since(began), changes)
	if _, err := w.Start(Operator(cluster, config.Default())); err != nil {
		t.Fatal(err)
	}
	cfg := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "upgrade"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: w.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339), PDBForceDrainTimeout: new(int32(60)),
			Desired: upgradev1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
		},
	}
	if err := cluster.Client.Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	err = w.RunUntil(6*time.Hour, func() bool {
		var now upgradev1alpha1.UpgradeConfig
		err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(cfg), &now)
		return err == nil && len(now.Status.History) > 0 && now.Status.History[0].Phase == history.PhaseUpgraded
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("upgraded at %s after %s, %d changes", w.Now(), time.Since(began), changes)
}
