// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// change lets something happen on the cluster, and the agent report it.
func (w *world) change(d time.Duration, do func()) {
	w.After(d, func() { do(); w.wakeAgent(10 * time.Second) })
}

// admit creates the run as the hub does.
func (w *world) admit(edits ...func(*fleetv1alpha1.ClusterUpgradeRunSpec)) {
	w.TB.Helper()
	upgrade := w.upgrade()
	run := &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: "stores-1a2b3c4d", Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(upgrade.UID)},
		},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: upgrade.Namespace, Name: upgrade.Name, UID: string(upgrade.UID)},
			Attempt:                1, AdmissionTime: metav1.NewTime(w.Now().Truncate(time.Second)), ClusterVersion: upgrade.Spec.ClusterVersion,
		},
	}
	for _, edit := range edits {
		edit(&run.Spec)
	}
	if run.Spec.Outcome == nil {
		run.Finalizers = []string{fleetv1alpha1.Finalizer, fleetv1alpha1.WorksFinalizer}
	}
	w.Create(run)
}

// retry raises the attempt as the hub does.
func (w *world) retry() {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.run(), func(run *fleetv1alpha1.ClusterUpgradeRun) {
		run.Spec.Attempt++
		run.Spec.AdmissionTime = metav1.NewTime(w.Now().Truncate(time.Second))
	})
}

func (w *world) editUpgrade(edit func(*fleetv1beta1.ManagedClustersUpgradeSpec)) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.upgrade(), func(u *fleetv1beta1.ManagedClustersUpgrade) { edit(&u.Spec) })
}

func (w *world) claim(version string) { w.setClaim("version.openshift.io", version) }

// setClaim sets the only claim of the cluster; an empty value removes it.
func (w *world) setClaim(name, value string) {
	w.TB.Helper()
	managed := simulation.Get(w.Harness, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	managed.Status.ClusterClaims = nil
	if value != "" {
		managed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: name, Value: value}}
	}
	w.UpdateStatus(managed)
}

func (w *world) setAvailable(available bool) {
	w.TB.Helper()
	managed := simulation.Get(w.Harness, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	status := metav1.ConditionUnknown
	if available {
		status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&managed.Status.Conditions, metav1.Condition{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(w.Now()),
	})
	w.UpdateStatus(managed)
}

// setOffline disconnects the cluster, or connects it again.
func (w *world) setOffline(offline bool) {
	w.TB.Helper()
	w.offline = offline
	w.setAvailable(!offline)
	if !offline {
		w.wakeAgent(10 * time.Second)
	}
}

// runUntil lets time pass until the run has the state and the reason.
func (w *world) runUntil(limit time.Duration, state fleetv1alpha1.ClusterUpgradeState, reason string) {
	w.TB.Helper()
	err := w.RunUntil(limit, func() bool {
		run := w.run()
		return run != nil && run.Status.State == state && (reason == "" || run.Status.Reason == reason)
	})
	if err != nil {
		w.TB.Fatalf("waiting for %s %s: %v; %s", state, reason, err, w.describe())
	}
}

// settle lets time pass until the attempt has ended.
func (w *world) settle(limit time.Duration) {
	w.TB.Helper()
	err := w.RunUntil(limit, func() bool {
		run := w.run()
		return run == nil || !controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) && isTerminal(run)
	})
	if err != nil {
		w.TB.Fatalf("the run has not ended: %v; %s", err, w.describe())
	}
	w.RunFor(time.Minute)
}

// finishUpgrade publishes that all clusters of the upgrade are finished, as its controller does.
func (w *world) finishUpgrade() {
	w.TB.Helper()
	upgrade := w.upgrade()
	upgrade.Status.ObservedGeneration = upgrade.Generation
	upgrade.Status.ClustersSummery = &fleetv1beta1.ClustersSummary{Total: 1, Complete: 1}
	w.UpdateStatus(upgrade)
}

func raw(manifest string) workv1.Manifest {
	return workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}
}
