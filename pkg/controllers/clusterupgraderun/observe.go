// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

// observe reads what a pass over a run depends on, from the cache.
func (r *Reconciler) observe(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) (view, error) {
	var v view
	var err error
	if v.upgrade, err = fleet.Upgrade(ctx, r.client, run); err != nil && !errors.Is(err, fleet.ErrNoUpgrade) {
		return v, err
	}
	if v.held, err = r.held(ctx, run.Namespace); err != nil {
		return v, err
	}
	cluster, uid := fleet.Cluster{Client: r.client, Run: run}, run.Spec.ManagedClustersUpgrade.UID
	var found [3]*workv1.ManifestWork
	var forms [3]delivery.Form
	for i, name := range []string{
		delivery.UpgradeName(run.Namespace), delivery.ActionName(uid, delivery.PreUpgrade), delivery.ActionName(uid, delivery.PostUpgrade),
	} {
		if found[i], forms[i], err = cluster.Delivered(ctx, name); err != nil {
			return v, err
		}
		v.failing = v.failing || found[i] != nil && reportsFailure(found[i])
	}
	var appliedPlatform, appliedPre bool
	if found[0] != nil {
		v.delivers = true
		v.platform = fleet.ReadPlatform(run, found[0])
		f := feedback.Read(found[0])
		appliedPlatform = f.Applied == metav1.ConditionTrue && forms[0] != delivery.FormWithdraw
	}
	v.pre, v.post = readAction(found[1]), readAction(found[2])
	appliedPre = v.pre != nil && v.pre.Applied
	v.applied = appliedPlatform || appliedPre
	v.progress = r.observeProgress(run, &v)
	return v, nil
}

// held returns why an annotation holds a cluster; empty means that none does.
func (r *Reconciler) held(ctx context.Context, name string) (string, error) {
	var cluster clusterv1.ManagedCluster
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("getting ManagedCluster %s: %w", name, err)
	}
	return admission.Held(&cluster), nil
}

// readAction returns the state of an action; nil means that it is not delivered.
func readAction(work *workv1.ManifestWork) *fleetv1alpha1.ActionStatus {
	if work == nil {
		return nil
	}
	f := feedback.Read(work)
	state, _ := f.Action()
	return &fleetv1alpha1.ActionStatus{Applied: f.Applied == metav1.ConditionTrue, State: state}
}

// observeProgress returns since when the cluster has reported the same. A process that starts while a run
// stalls continues with that.
func (r *Reconciler) observeProgress(run *fleetv1alpha1.ClusterUpgradeRun, v *view) progress {
	now := progress{
		uid: run.UID, attempt: run.Spec.Attempt, at: r.Clock.Now(),
		text: string(v.platform.Stage) + " " + v.platform.Message,
	}
	if len(run.Status.History) > 0 {
		if c := current(&run.Status.History[0]); c != nil {
			now.step = c.Type
		}
	}
	last := r.cache.view(client.ObjectKeyFromObject(run)).progress
	at := last.at
	if last.at = now.at; last == now {
		now.at = at
		return now
	}
	stalled := apimeta.FindStatusCondition(run.Status.Conditions, fleetv1alpha1.ConditionStalled)
	if at.IsZero() && stalled != nil && stalled.Status == metav1.ConditionTrue {
		now.at = time.Time{}.Add(time.Second) // the step stalls since it started
	}
	return now
}

// tidy removes what has no use any more once the run has ended: the work of a platform that was upgraded
// late, and the actions once all clusters of the upgrade are finished.
func (r *Reconciler) tidy(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun, v view) error {
	ended := run.Status.Attempt == run.Spec.Attempt && !controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) &&
		(run.Status.State == fleetv1alpha1.StateComplete || run.Status.State == fleetv1alpha1.StateFailed)
	if !ended {
		return nil
	}
	cluster := fleet.Cluster{Client: r.client, Run: run}
	if run.Status.Reason == fleetv1alpha1.ReasonLateSuccess && v.delivers {
		if err := cluster.RemoveUpgrade(ctx); err != nil {
			return err
		}
	}
	if (v.pre != nil || v.post != nil) && v.upgrade != nil && isFinished(v.upgrade) {
		return cluster.RemoveActions(ctx)
	}
	return nil
}

// protect repairs the works of a run by whose deletion the ClusterVersion would be deleted, and sets the
// finalizer of the run while a work contains the ClusterVersion. It reports whether it has changed the
// run. Before a run that is being deleted loses this finalizer, its works are removed.
func (r *Reconciler) protect(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) (bool, error) {
	cluster := fleet.Cluster{Client: r.client, Run: run}
	found, err := cluster.ProtectClusterVersion(ctx)
	deleting := !run.DeletionTimestamp.IsZero()
	ended := !controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer)
	if err == nil && deleting && ended && controllerutil.ContainsFinalizer(run, fleetv1alpha1.WorksFinalizer) {
		err, found = cluster.RemoveAll(ctx), false
	}
	if err != nil {
		return false, err
	}
	after := run.DeepCopy()
	switch {
	case found && !deleting && controllerutil.AddFinalizer(after, fleetv1alpha1.WorksFinalizer):
	case !found && ended && controllerutil.RemoveFinalizer(after, fleetv1alpha1.WorksFinalizer):
	default:
		return false, nil
	}
	if err := r.client.Patch(ctx, after, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("setting the finalizers of ClusterUpgradeRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return true, nil
}
