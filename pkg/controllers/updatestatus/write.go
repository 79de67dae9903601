// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

const (
	// writeInterval is the shortest time between two writes.
	writeInterval = 5 * time.Second
	// writeRate bounds what is written on average, in bytes a second.
	writeRate = 20 << 10
	// heartbeat is the time between two writes of an unchanged status while an update is active.
	heartbeat = time.Minute
)

// budget bounds the writes of the UpdateStatus.
type budget struct {
	lastWrite time.Time
	nextWrite time.Time
}

// spend notes a write.
func (b *budget) spend(bytes int, now time.Time) {
	b.lastWrite = now
	b.nextWrite = now.Add(max(writeInterval, time.Duration(bytes)*time.Second/writeRate))
}

// wait returns how long to wait before the next write. A clock that was set back waits no longer than
// the interval.
func (b *budget) wait(now time.Time) time.Duration {
	if b.lastWrite.After(now) {
		*b = budget{}
	}
	return max(0, b.nextWrite.Sub(now))
}

// write writes the status if it changed, or if it is time to confirm it.
func (r *Reconciler) write(ctx context.Context, object *v1beta1.UpdateStatus, status v1beta1.UpdateStatusStatus) (reconcile.Result, error) {
	now := r.Clock.Now()
	r.Metrics.SetStatus(status, now)
	active := isActive(status)
	next := reconcile.Result{RequeueAfter: idleInterval}
	if active {
		next.RequeueAfter = activeInterval
	}
	next.RequeueAfter = untilWithdrawal(status.StartableReleases, now, next.RequeueAfter)
	due, err := isDue(object.Status, status, active, now)
	if err != nil || !due {
		return next, err
	}
	if wait := r.budget.wait(now); wait > 0 {
		return reconcile.Result{RequeueAfter: max(wait, debounce)}, nil
	}
	updated := &v1beta1.UpdateStatus{TypeMeta: object.TypeMeta, ObjectMeta: object.ObjectMeta, Spec: object.Spec, Status: status}
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	data, err := patch.Data(updated)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the UpdateStatus: %w", err)
	}
	err = r.Client.Status().Patch(ctx, updated, client.RawPatch(patch.Type(), data))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the cache is behind
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("updating the status of the UpdateStatus: %w", err)
	}
	r.budget.spend(len(data), now)
	r.Metrics.ObserveStatusWrite(len(data))
	r.publish(ctx, object, status)
	return next, nil
}

// isDue reports whether a status is to be written: it changed, or it was confirmed too long ago.
func isDue(published, status v1beta1.UpdateStatusStatus, active bool, now time.Time) (bool, error) {
	// As JSON, since the API server keeps times by the second.
	before, err := json.Marshal(significant(published))
	after, err2 := json.Marshal(significant(status))
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("encoding the status: %w", err)
	}
	if !bytes.Equal(before, after) {
		return true, nil
	}
	confirmed := published.ObservedTime
	return active && (confirmed == nil || now.Sub(confirmed.Time) >= heartbeat || confirmed.After(now.Add(heartbeat))), nil
}

// isActive reports whether an update is pending, or it is not known whether one is. The conditions of a
// cluster without sections are not known.
func isActive(status v1beta1.UpdateStatusStatus) bool {
	if status.ControlPlane == nil {
		return true
	}
	settled := apimeta.IsStatusConditionFalse(status.ControlPlane.Conditions, v1beta1.ConditionUpdatePending)
	for i := range status.WorkerPools {
		settled = settled && apimeta.IsStatusConditionFalse(status.WorkerPools[i].Conditions, v1beta1.ConditionUpdatePending)
	}
	return !settled
}

// significant returns a status without what changes although nothing happens: times of observation, and
// estimates, which are confirmed together with the status.
func significant(status v1beta1.UpdateStatusStatus) v1beta1.UpdateStatusStatus {
	s := *status.DeepCopy()
	s.ObservedTime = nil
	if s.ControlPlane != nil {
		withoutTimes(s.ControlPlane.UpdateInformers)
	}
	for i := range s.WorkerPools {
		withoutTimes(s.WorkerPools[i].UpdateInformers)
	}
	for i := range s.AfterUpdate {
		s.AfterUpdate[i].Insight.AcquisitionTime = metav1.Time{}
	}
	if s.Assessment != nil {
		for i := range s.Assessment.Sources {
			s.Assessment.Sources[i].ObservedTime = nil
		}
		withoutEstimates(s.Assessment.Estimate)
	}
	return s
}

func withoutTimes(informers []v1beta1.InformerInsights) {
	for i := range informers {
		for j := range informers[i].Insights {
			informers[i].Insights[j].AcquisitionTime = metav1.Time{}
		}
	}
}

func withoutEstimates(e *v1beta1.Estimate) {
	if e == nil {
		return
	}
	e.Earliest, e.Latest, e.MinSeconds, e.MaxSeconds = nil, nil, 0, 0
	for i := range e.Sections {
		e.Sections[i].Earliest, e.Sections[i].Latest, e.Sections[i].MinSeconds, e.Sections[i].MaxSeconds = nil, nil, 0, 0
	}
}
