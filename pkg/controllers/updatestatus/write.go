// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

const (
	// writeInterval is the minimum time between two writes.
	writeInterval = 5 * time.Second
	// writeRate limits the average rate of writes, in bytes per second.
	writeRate = 20 << 10
	// heartbeat is the write interval of an unchanged status while an update is active.
	heartbeat = time.Minute
)

// budget limits the writes of the UpdateStatus.
type budget struct {
	lastWrite time.Time
	nextWrite time.Time
}

// spend records a write.
func (b *budget) spend(bytes int, now time.Time) {
	b.lastWrite = now
	b.nextWrite = now.Add(max(writeInterval, time.Duration(bytes)*time.Second/writeRate))
}

// wait returns the delay until the next write is allowed. Setting the clock back does not make it
// longer than the interval.
func (b *budget) wait(now time.Time) time.Duration {
	if b.lastWrite.After(now) {
		*b = budget{}
	}
	return max(0, b.nextWrite.Sub(now))
}

// write writes the status if it has changed or its heartbeat is due.
func (r *Reconciler) write(ctx context.Context, object *updatev1beta1.UpdateStatus, status updatev1beta1.UpdateStatusStatus) (reconcile.Result, error) {
	now := r.Clock.Now()
	r.Metrics.SetStatus(status)
	active := updatestatus.IsActive(status)
	next := reconcile.Result{RequeueAfter: idleInterval}
	if active {
		next.RequeueAfter = activeInterval
	}
	next.RequeueAfter = untilWithdrawal(status.StartableReleases, now, next.RequeueAfter)
	due, err := isDue(object.Status, status, active, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !due {
		r.Metrics.SetStatusTime(now)
		return next, nil
	}
	if wait := r.budget.wait(now); wait > 0 {
		return reconcile.Result{RequeueAfter: max(wait, debounce)}, nil
	}
	if r.replaced.IsBehind(object, now) {
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	}
	updated := &updatev1beta1.UpdateStatus{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta, Spec: object.Spec, Status: status}
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(updated)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the UpdateStatus: %w", err)
	}
	r.publish(ctx, object, status)
	err = r.Client.Status().Patch(ctx, updated, client.RawPatch(patch.Type(), data))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the cache is stale
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("updating the status of the UpdateStatus: %w", err)
	}
	r.written = true
	r.replaced.Note(object, updated, now)
	r.budget.spend(len(data), now)
	r.Metrics.ObserveStatusWrite(len(data))
	r.Metrics.SetStatusTime(now)
	return next, nil
}

// isDue reports whether a status must be written because it has changed or its heartbeat is due.
func isDue(published, status updatev1beta1.UpdateStatusStatus, active bool, now time.Time) (bool, error) {
	changed, err := updatestatus.HasChanged(published, status)
	if err != nil || changed {
		return changed, err
	}
	confirmed := published.ObservedTime
	return active && (confirmed == nil || now.Sub(confirmed.Time) >= heartbeat || confirmed.After(now.Add(heartbeat))), nil
}
