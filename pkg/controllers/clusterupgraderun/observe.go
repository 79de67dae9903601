// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// cluster returns the steps of a run, with its last record.
func (r *Reconciler) cluster(run *fleetv1alpha1.ClusterUpgradeRun) fleetrun.Cluster {
	return fleetrun.Cluster{
		Client: r.client, Run: run, Record: run.Record(), Image: r.Image, ReplicaSets: r.ReplicaSets, Writes: r.writes, Watched: r.view(run).watched,
	}
}

// observe reads from the cache what a pass over a run depends on.
func (r *Reconciler) observe(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) (view, error) {
	v, now := view{watched: r.view(run).watched}, r.Clock.Now()
	if v.watched.IsZero() || v.watched.After(now) { // the clock may jump back
		v.watched = now
	}
	var err error
	if v.upgrade, err = fleetrun.Upgrade(ctx, r.client, run); err != nil && !errors.Is(err, fleetrun.ErrNoUpgrade) {
		return v, err
	}
	managed, err := fleetrun.ManagedCluster(ctx, r.client, run.Namespace)
	if err != nil {
		return v, err
	}
	v.held = admission.Held(managed)
	cluster, uid := r.cluster(run), run.Spec.ManagedClustersUpgrade.UID
	platform, form, err := cluster.Delivered(ctx, delivery.UpgradeName(run.Namespace))
	pre, _, err2 := cluster.Delivered(ctx, delivery.ActionName(uid, delivery.PreUpgrade))
	post, _, err3 := cluster.Delivered(ctx, delivery.ActionName(uid, delivery.PostUpgrade))
	if err := errors.Join(err, err2, err3); err != nil {
		return v, err
	}
	v.failing = slices.ContainsFunc([]*workv1.ManifestWork{platform, pre, post}, func(work *workv1.ManifestWork) bool { return delivery.Read(work).ReportsFailure() })
	if platform != nil && form != delivery.FormFence {
		v.delivers, v.platform = true, fleetrun.ReadPlatform(run, platform)
		v.applied = form != delivery.FormWithdraw && delivery.Read(platform).IsApplied()
	}
	v.pre, v.post = readAction(pre), readAction(post)
	v.applied = v.applied || delivery.Read(pre).IsApplied()
	if run.Spec.ClusterVersion == nil && !v.applied { // only the operators are upgraded
		operators, _, err := cluster.Delivered(ctx, delivery.OperatorsName(run.Namespace))
		if err != nil {
			return v, err
		}
		v.applied = delivery.Read(operators).IsApplied()
	}
	v.progress = r.observeProgress(run, &v)
	return v, nil
}

func readAction(work *workv1.ManifestWork) *fleetv1alpha1.ActionStatus {
	if work == nil {
		return nil
	}
	state, _ := delivery.Read(work).Action()
	return &fleetv1alpha1.ActionStatus{Applied: delivery.MayBeApplied(work), State: state}
}

// observeProgress returns since when the cluster has reported the same. A restart while a run stalls changes nothing.
func (r *Reconciler) observeProgress(run *fleetv1alpha1.ClusterUpgradeRun, v *view) progress {
	now := progress{
		uid: run.UID, attempt: run.Spec.Attempt, at: r.Clock.Now(),
		text: string(v.platform.Stage) + " " + v.platform.Message,
	}
	if c := run.Record().Running(); c != nil {
		now.step = c.Type
	}
	last := r.view(run).progress
	at := last.at
	if v.platform.Slow && last.uid == now.uid && last.attempt == now.attempt && last.step == now.step {
		now.text = last.text // what it says about being slow is no progress
	}
	if last.at = now.at; last == now {
		now.at = at
		return now
	}
	if at.IsZero() && apimeta.IsStatusConditionTrue(run.Status.Conditions, fleetv1alpha1.ConditionSlow) {
		now.at = time.Time{}.Add(time.Second) // the step stalls since it started
	}
	return now
}

// tidy removes what has no use once the run has ended: the work of a platform that was upgraded late, works that another hub
// has written since, and the actions once all clusters of the upgrade are finished.
func (r *Reconciler) tidy(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun, v view) error {
	if run.Status.Attempt != run.Spec.Attempt || controllerutil.ContainsFinalizer(run, fleetv1alpha1.Finalizer) || !isEnd(run.Status.State) {
		return nil
	}
	cluster := r.cluster(run)
	if v.upgrade != nil { // without it, the run is deleted as well
		if err := cluster.Tidy(ctx, engine.Run{Now: r.Clock.Now()}, run.Status.State == fleetv1alpha1.StateFailed); err != nil {
			return err
		}
	}
	return r.removeActions(ctx, run, v)
}

// removeActions removes the works of the actions once no cluster needs them.
func (r *Reconciler) removeActions(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun, v view) error {
	if v.pre == nil && v.post == nil || v.upgrade == nil || !isFinished(v.upgrade) {
		return nil
	}
	cluster := r.cluster(run)
	return cluster.RemoveActions(ctx)
}

// protect makes sure that deleting the works of a run cannot delete the ClusterVersion. The run has a finalizer while a work
// contains the ClusterVersion; before a deleted run loses it, its works are removed. The API server confirms
// each change: two hubs whose caches differ would otherwise undo each other's changes without a pause. The result reports
// whether the run has changed.
func (r *Reconciler) protect(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) (bool, error) {
	cluster := r.cluster(run)
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
	if confirmed, err := cluster.DeliversClusterVersion(ctx, r.live); err != nil || confirmed != found {
		return false, err
	}
	if err := r.client.Patch(ctx, after, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("setting the finalizers of ClusterUpgradeRun %s/%s: %w", run.Namespace, run.Name, err)
	}
	return true, nil
}

// view holds what a pass over a run has read of others.
type view struct {
	upgrade  *fleetv1beta1.ManagedClustersUpgrade // nil if it does not exist
	held     string                               // why an annotation holds the cluster
	platform fleetrun.Platform
	applied  bool // an action or the upgrade is applied
	delivers bool // the work of the platform is one of this attempt
	failing  bool // the agent reports what may fail the run
	pre      *fleetv1alpha1.ActionStatus
	post     *fleetv1alpha1.ActionStatus
	watched  time.Time // since when this process looks at the run
	progress progress
}

func (r *Reconciler) view(run *fleetv1alpha1.ClusterUpgradeRun) view {
	known, _ := r.views.Load(client.ObjectKeyFromObject(run))
	v, _ := known.(view)
	return v
}

// progress holds what a cluster last reported, and since when.
type progress struct {
	uid     types.UID
	attempt int32
	step    string
	text    string
	at      time.Time
}

// isFinished reports whether all clusters of an upgrade are terminal, or, after a cancellation, none is in flight.
func isFinished(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	counters := upgrade.Status.ClustersSummery
	return counters != nil && upgrade.Status.ObservedGeneration == upgrade.Generation &&
		(counters.Ended() || upgrade.Spec.Cancelled && counters.Total > 0 && counters.InFlight()+counters.Finishing == 0)
}
