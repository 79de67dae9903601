// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// evictionTimeout bounds an eviction. The client retries by itself, for minutes, as long as the
// controller has not observed a budget yet.
const evictionTimeout = 5 * time.Second

// force removes a pod from the node: through the Eviction API if that allows it, or else by deleting
// it with its own grace period. A pod that was deleted before and has not terminated in its grace
// period is removed with none. The Event is published first, because none can be published about a
// pod that is gone.
func (s *drainScope) force(ctx context.Context, bp blockedPod) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: bp.Namespace, Name: bp.Name}}
	preconditions := metav1.Preconditions{UID: &bp.UID}
	options := []client.DeleteOption{client.Preconditions(preconditions)}
	if bp.heldBy == checks.HeldByTermination {
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
	case manager.IsRejected(err):
		bp.reason = "its deletion was refused and is tried again every minute: " + text.Reason(err.Error())
		return s.publishCannotForce(ctx, bp)
	case err != nil:
		return fmt.Errorf("deleting pod %s/%s: %w", bp.Namespace, bp.Name, err)
	}
	s.Metrics.IncForced(string(bp.heldBy))
	s.log.Info("forced a pod", "namespace", bp.Namespace, "pod", bp.Name, "reason", bp.reason)
	return nil
}

// evict requests the eviction of a pod, and reports whether nothing more is to be done now: the pod
// leaves, is gone, or has more time.
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
	case bp.heldBy == checks.HeldByPDB: // its time is over, whatever the answer is
		return false, nil
	}
	// The refusal may be due to a budget that the cache does not hold yet. Then the pod has more time.
	budgets, err := clusterstate.ListPDBs(ctx, s.Live, bp.Namespace)
	return slices.ContainsFunc(budgets, func(b clusterstate.PDB) bool { return b.Selects(bp.Pod) }), err
}

// isGone reports whether the pod does not exist any more: there is none of its name, or another one.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
