// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejobhook

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// releaseJobs removes this operator's finalizer from the Jobs of the upgrades with a name, once
// their results are recorded or no longer needed.
func (r *Reconciler) releaseJobs(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := r.forgetEnded(ctx, request.NamespacedName); err != nil {
		return reconcile.Result{}, err
	}
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(request.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the Jobs of hooks: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		owner := hooks.OwnerOf(job)
		if owner.Name != request.Name || !controllerutil.ContainsFinalizer(job, hooks.Finalizer) {
			continue
		}
		needed, err := r.isNeeded(ctx, owner, job)
		if err != nil {
			return reconcile.Result{}, err
		}
		if needed {
			continue
		}
		if err := r.release(ctx, job); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: time.Second}, nil // the cache will catch up
		} else if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, nil
}

// forgetEnded drops the in-memory state of ended upgrades with a name.
func (r *Reconciler) forgetEnded(ctx context.Context, key client.ObjectKey) error {
	for _, kind := range maintenance.OwnerKinds() {
		object := kind.New()
		switch err := r.Client.Get(ctx, key, object); {
		case err == nil && kind.HasEnded(object):
			r.Runner.Forget(object.GetUID())
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("getting %s %s: %w", kind.Kind, key, err)
		}
	}
	return nil
}

// isNeeded reports whether the result of a Job must still be recorded. A missing owner or record is
// confirmed with the API server, because the cache may be stale.
func (r *Reconciler) isNeeded(ctx context.Context, owner maintenance.Owner, job *batchv1.Job) (bool, error) {
	key, object := client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, owner.New()
	if err := r.Client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting %s %s: %w", owner.Kind, key, err)
	}
	if object.GetUID() == owner.UID {
		if recorded, known := hooks.JobRecorded(owner, object, job); known {
			return !recorded, nil
		}
	}
	live := owner.New()
	if err := r.Live.Get(ctx, key, live); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting %s %s from the API server: %w", owner.Kind, key, err)
	}
	if live.GetUID() != owner.UID {
		r.Runner.Forget(owner.UID)
		return false, nil
	}
	recorded, _ := hooks.JobRecorded(owner, live, job)
	return !recorded, nil
}

// release removes this operator's finalizer from a Job.
func (r *Reconciler) release(ctx context.Context, job *batchv1.Job) error {
	before := job.DeepCopy()
	controllerutil.RemoveFinalizer(job, hooks.Finalizer)
	err := r.Client.Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing Job %s: %w", job.Name, err)
	}
	return nil
}
