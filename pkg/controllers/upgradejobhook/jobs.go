// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejobhook

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// releaseJobs removes our finalizer from the Jobs of an UpgradeJob whose results are recorded, or are
// not waited for any more.
func (r *Reconciler) releaseJobs(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var upgrade *v1beta1.UpgradeJob
	var cached v1beta1.UpgradeJob
	switch err := r.Client.Get(ctx, request.NamespacedName, &cached); {
	case err == nil:
		upgrade = &cached
		if latest := maintenance.LatestAttempt(upgrade); latest != nil && latest.Finished() {
			r.Runner.Forget(cached.UID)
		}
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("getting the UpgradeJob: %w", err)
	}
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(request.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Jobs of hooks: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		name, uid := hooks.UpgradeJobOf(job)
		if name != request.Name || !controllerutil.ContainsFinalizer(job, hooks.Finalizer) {
			continue
		}
		needed, err := r.isNeeded(ctx, upgrade, uid, job)
		if err != nil {
			return reconcile.Result{}, err
		}
		if needed {
			continue
		}
		if err := r.release(ctx, job); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: time.Second}, nil // the cache will follow
		} else if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// isNeeded reports whether the result of a Job is still to be recorded. That its UpgradeJob is gone
// is read from the API server: the cache may be behind.
func (r *Reconciler) isNeeded(ctx context.Context, upgrade *v1beta1.UpgradeJob, uid types.UID, job *batchv1.Job) (bool, error) {
	if upgrade != nil && upgrade.UID == uid {
		return !hooks.JobRecorded(upgrade.Status.History, job), nil
	}
	name, _ := hooks.UpgradeJobOf(job)
	var live v1beta1.UpgradeJob
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &live)
	switch {
	case apierrors.IsNotFound(err):
		r.Runner.Forget(uid)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("getting UpgradeJob %s: %w", name, err)
	}
	return live.UID == uid, nil // the cache will follow
}

// release removes our finalizer from a Job.
func (r *Reconciler) release(ctx context.Context, job *batchv1.Job) error {
	before := job.DeepCopy()
	controllerutil.RemoveFinalizer(job, hooks.Finalizer)
	err := r.Client.Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing Job %s: %w", job.Name, err)
	}
	return nil
}
