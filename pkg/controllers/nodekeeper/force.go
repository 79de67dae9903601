// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

// evictionPatience is how long an eviction may take. The client tries again by
// itself, for minutes, as long as a budget is not accounted for yet.
const evictionPatience = 5 * time.Second

// force has a pod leave the node: by the Eviction API if that will do, or else
// by deleting it, with the grace period that it asked for. One that was deleted
// before and has not ended in its grace period is removed. It is told first,
// since of a pod that is gone nothing can be told any more.
func (l *look) force(ctx context.Context, t task) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	itself := metav1.Preconditions{UID: &t.UID}
	options := []client.DeleteOption{client.Preconditions(itself)}
	if t.hold == telemetry.HeldInTermination {
		options = append(options, client.GracePeriodSeconds(0))
	} else if done, err := l.evict(ctx, pod, t, itself); done || err != nil {
		return err
	}
	if err := l.tellForced(ctx, t); err != nil {
		return err
	}
	switch err := l.Client.Delete(ctx, pod, options...); {
	case gone(err):
		return nil
	case refused(err):
		t.why = "its deletion was refused: " + cluster.Brief(err.Error())
		return l.tellStuck(ctx, t)
	case err != nil:
		return fmt.Errorf("deleting pod %s/%s: %w", t.Namespace, t.Name, err)
	}
	l.Metrics.Forced(t.hold)
	l.log.Info("forced a pod", "namespace", t.Namespace, "pod", t.Name, "why", t.why)
	return nil
}

// evict asks for the eviction of a pod, and says whether that is all for now:
// the pod leaves, or is gone, or is to be left alone.
func (l *look) evict(ctx context.Context, pod *corev1.Pod, t task, itself metav1.Preconditions) (bool, error) {
	asking, cancel := context.WithTimeout(ctx, evictionPatience)
	defer cancel()
	err := l.Client.SubResource("eviction").Create(asking, pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &itself}})
	switch {
	case err == nil:
		l.log.Info("evicted a pod", "namespace", t.Namespace, "pod", t.Name)
		return true, nil
	case gone(err):
		return true, nil
	case t.hold == telemetry.HeldByBudget: // its time is over, whatever the answer
		return false, nil
	}
	// The answer may be that of a budget which is newer than the cache. Then the pod has more time.
	budgets, err := cluster.ReadBudgets(ctx, l.Live, t.Namespace)
	return slices.ContainsFunc(budgets, func(b cluster.Budget) bool { return b.Guards(t.Pod) }), err
}

// gone says that there is no such pod any more: none of the name, or another.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// refused says that the API server has answered no, and would do so again.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
