// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func concurrency(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(n))
	}
}

func maxFailures(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxFailures = new(intstr.FromInt32(n))
	}
}

// canary selects the cluster by its label name.
func canary(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{
		ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}},
	}
}

func (w *world) addCluster(name string) {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"selected": "yes"}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	w.Create(cluster)
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.NewTime(w.Now()),
	}}
	w.UpdateStatus(cluster)
}

// selectClusters selects the clusters with the label selected, in groups by the label group.
func (w *world) selectClusters(ctx context.Context, cache client.Reader, upgrade *fleetv1beta1.ManagedClustersUpgrade, _ map[string]*clusterv1.ManagedCluster, _ selection.SelectOptions) (selection.Selection, error) {
	var list clusterv1.ManagedClusterList
	if err := cache.List(ctx, &list); err != nil {
		return selection.Selection{}, err
	}
	if w.unreadable != nil {
		return selection.Selection{}, w.unreadable
	}
	if w.unstable != "" {
		return selection.Selection{Unstable: w.unstable}, nil
	}
	selected := selection.Selection{}
	for i := range list.Items {
		labels := list.Items[i].Labels
		if labels["selected"] == "" {
			continue
		}
		selected.Members = append(selected.Members, selection.SelectedCluster{
			Name: list.Items[i].Name, Group: len(labels["group"]),
			Canary: upgrade.Spec.UpgradeStrategy.CanaryClusters != nil && labels["canary"] != "",
		})
	}
	return selected, nil
}

// setState writes the status of a run, as its controller does. A run that is gone or that has
// another attempt is left alone.
func (w *world) setState(admitted *fleetv1alpha1.ClusterUpgradeRun, state fleetv1alpha1.ClusterUpgradeState, reason string) {
	run := simulation.Find(w.Harness, client.ObjectKeyFromObject(admitted), &fleetv1alpha1.ClusterUpgradeRun{})
	if run == nil || run.Spec.Attempt != admitted.Spec.Attempt || run.UID != admitted.UID {
		return
	}
	run.Status.Attempt, run.Status.State, run.Status.Reason, run.Status.Applied = run.Spec.Attempt, state, reason, true
	started, ended := metav1.NewTime(w.Now().Add(-time.Minute)), metav1.NewTime(w.Now())
	record := history.Record{Attempt: run.Spec.Attempt}
	for _, step := range []string{fleetv1alpha1.StepPreUpgradeActionAvailable, fleetv1alpha1.StepUpgradeDelivered} {
		record.Conditions = append(record.Conditions, history.StepCondition{
			Type: step, Status: metav1.ConditionTrue, Reason: "Done", StartTime: &started, CompleteTime: &ended, LastTransitionTime: &ended,
		})
	}
	run.Status.History = []history.Record{record}
	w.UpdateStatus(run)
	if state == fleetv1alpha1.StateComplete || state == fleetv1alpha1.StateFailed {
		w.release(run)
	}
}

// release removes the finalizers of a run, as its controller does once the run has ended.
func (w *world) release(ended *fleetv1alpha1.ClusterUpgradeRun) {
	run := simulation.Find(w.Harness, client.ObjectKeyFromObject(ended), &fleetv1alpha1.ClusterUpgradeRun{})
	if run != nil && len(run.Finalizers) > 0 && !w.cleaning[ended.Namespace] {
		run.Finalizers = nil
		w.Update(run)
	}
}

// runUntil lets time pass until the condition Admitting has the reason.
func (w *world) runUntil(limit time.Duration, reason string) {
	w.TB.Helper()
	if err := w.RunUntil(limit, func() bool { return w.reason() == reason }); err != nil {
		w.TB.Fatalf("waiting for %s: %v; %s", reason, err, w.describe())
	}
}

// edit changes the upgrade as a user does.
func (w *world) edit(do func(*fleetv1beta1.ManagedClustersUpgrade)) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.get(), do)
}

// editCluster changes a ManagedCluster.
func (w *world) editCluster(name string, do func(*clusterv1.ManagedCluster)) {
	w.TB.Helper()
	cluster := simulation.Get(w.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	do(cluster)
	w.Update(cluster)
}

// claim sets the claims of a cluster.
func (w *world) claim(name, claim, value string) {
	w.TB.Helper()
	cluster := simulation.Get(w.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: claim, Value: value})
	w.UpdateStatus(cluster)
}

func (w *world) makeCanary(name string) {
	w.TB.Helper()
	w.editCluster(name, func(c *clusterv1.ManagedCluster) { c.Labels["canary"] = "yes" })
}
