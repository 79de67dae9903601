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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// evictionTimeout is how long an eviction may take. The client tries again by
// itself, for minutes, as long as a budget is not accounted for yet.
const evictionTimeout = 5 * time.Second

// force has a pod leave the node: by the Eviction API if that will do, or else
// by deleting it, with the grace period that it asked for. One that was deleted
// before and has not ended in its grace period is removed. It is told first,
// since of a pod that is gone nothing can be told any more.
func (s *drainScope) force(ctx context.Context, bp blockedPod) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: bp.Namespace, Name: bp.Name}}
	preconditions := metav1.Preconditions{UID: &bp.UID}
	options := []client.DeleteOption{client.Preconditions(preconditions)}
	if bp.blockedBy == metrics.BlockedByTermination {
		options = append(options, client.GracePeriodSeconds(0))
	} else if done, err := s.evict(ctx, pod, bp, preconditions); done || err != nil {
		return err
	}
	if err := s.publishForced(ctx, bp); err != nil {
		return err
	}
	switch err := s.Client.Delete(ctx, pod, options...); {
	case isGone(err):
		return nil
	case isPermanentClientError(err):
		bp.reason = "its deletion was refused: " + text.Reason(err.Error())
		return s.publishCannotForce(ctx, bp)
	case err != nil:
		return fmt.Errorf("deleting pod %s/%s: %w", bp.Namespace, bp.Name, err)
	}
	s.Metrics.IncForced(bp.blockedBy)
	s.log.Info("forced a pod", "namespace", bp.Namespace, "pod", bp.Name, "why", bp.reason)
	return nil
}

// evict asks for the eviction of a pod, and says whether that is all for now:
// the pod leaves, or is gone, or is to be left alone.
func (s *drainScope) evict(ctx context.Context, pod *corev1.Pod, bp blockedPod, preconditions metav1.Preconditions) (bool, error) {
	evictCtx, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	err := s.Client.SubResource("eviction").Create(evictCtx, pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &preconditions}})
	switch {
	case err == nil:
		s.log.Info("evicted a pod", "namespace", bp.Namespace, "pod", bp.Name)
		return true, nil
	case isGone(err):
		return true, nil
	case bp.blockedBy == metrics.BlockedByPDB: // its time is over, whatever the answer
		return false, nil
	}
	// The answer may be that of a budget which is newer than the cache. Then the pod has more time.
	budgets, err := clusterstate.ListPDBs(ctx, s.Live, bp.Namespace)
	return slices.ContainsFunc(budgets, func(b clusterstate.PDB) bool { return b.Selects(bp.Pod) }), err
}

// isGone says that there is no such pod any more: none of the name, or another.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// isPermanentClientError says that the API server has answered no, and would do so again.
func isPermanentClientError(err error) bool {
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
