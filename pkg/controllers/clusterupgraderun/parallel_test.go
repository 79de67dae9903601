// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// The runs of several clusters are reconciled at a time. The race detector finds what they share.
func TestRuns_are_reconciled_in_parallel(t *testing.T) {
	t.Parallel()
	const clusters = 16
	now := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores", UID: "12345678-0000"}}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: target, Channel: "stable-4.20"}
	objects := []client.Object{upgrade}
	for i := range clusters {
		name := fmt.Sprintf("store-%d", i)
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "stores", UID: upgrade.UID, Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(upgrade.UID)},
			Finalizers: []string{fleetv1alpha1.Finalizer, fleetv1alpha1.WorksFinalizer},
		}}
		run.Spec = fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "stores", UID: string(upgrade.UID)},
			Attempt:                1, AdmissionTime: metav1.NewTime(now), ClusterVersion: upgrade.Spec.ClusterVersion,
		}
		managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		objects = append(objects, run, managed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	hub := fake.NewClientBuilder().WithScheme(simulation.NewScheme()).
		WithStatusSubresource(&fleetv1alpha1.ClusterUpgradeRun{}).WithObjects(objects...).Build()
	controller := (&clusterupgraderun.Reconciler{Clock: clocktesting.NewFakePassiveClock(now), Namespace: hubNamespace, Image: hubImage}).Controller()
	if controller.MaxConcurrentReconciles < 2 {
		t.Errorf("%d runs are reconciled at a time", controller.MaxConcurrentReconciles)
	}
	if err := controller.Bind(manager.Clients{Client: hub, Live: hub}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range clusters {
		group.Go(func() {
			for range 4 {
				request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: fmt.Sprintf("store-%d", i), Name: "stores"}}
				if _, err := controller.Reconciler.Reconcile(context.WithoutCancel(t.Context()), request); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	var works workv1.ManifestWorkList
	if err := hub.List(t.Context(), &works); err != nil || len(works.Items) != clusters {
		t.Errorf("%d works, %v", len(works.Items), err)
	}
}

// A pass follows at once, and the cache does not hold the work that the pass before has created.
func TestRun_creates_no_work_that_the_cache_lacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Writes = simulation.Fault{Lag: []string{"ManifestWork"}, LagFor: 3 * time.Second}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Kind == "ManifestWork"
	})
	w.admit()
	for second := range 30 {
		w.RunFor(time.Second)
		w.editUpgrade(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) {
			s.UpgradeStrategy.StallTimeout = fleetv1beta1.Duration(fmt.Sprintf("%dm", 45+second))
		})
	}
	w.settle(2 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if n := w.Count("create ManifestWork"); n != 2 {
		t.Errorf("%d works were created", n)
	}
}
