// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// evictionTimeout limits an eviction. While the disruption controller has not yet observed a PDB,
// the client keeps retrying for minutes.
const evictionTimeout = 5 * time.Second

// force removes a pod from the node. It uses the Eviction API if that succeeds; otherwise, once the
// deadline has passed, it deletes the pod with the pod's own grace period. A refused eviction
// protects the pod like a PDB and gives it more time. A pod that was deleted before and did not
// terminate within its grace period is deleted with a grace period of 0. The Event is published
// first, because none can be published about a deleted pod.
func (s *drainScope) force(ctx context.Context, bp blockedPod) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: bp.Namespace, Name: bp.Name}}
	preconditions := metav1.Preconditions{UID: &bp.UID}
	options := []client.DeleteOption{client.Preconditions(preconditions)}
	if bp.heldBy == clusterstate.HeldByTermination {
		options = append(options, client.GracePeriodSeconds(0))
	} else {
		evictErr := s.evict(ctx, pod, preconditions)
		if evictErr == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if bp.heldBy != clusterstate.HeldByPDB {
			if more, err := s.guard(ctx, &bp, evictErr); more || err != nil {
				return err
			}
		}
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

// evict requests the eviction of a pod. If it returns no error, the pod is leaving or gone.
func (s *drainScope) evict(ctx context.Context, pod *corev1.Pod, preconditions metav1.Preconditions) error {
	evictCtx, cancel := context.WithTimeout(ctx, evictionTimeout)
	defer cancel()
	err := s.Client.SubResource("eviction").Create(evictCtx, pod, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &preconditions}})
	switch {
	case err == nil:
		s.log.Info("evicted a pod", "namespace", pod.Namespace, "pod", pod.Name)
		return nil
	case isGone(err):
		return nil
	}
	return err
}

// guard records the refused eviction of a pod that no cached PDB selects, and reports whether the
// pod has more time. An eviction without a response is retried.
func (s *drainScope) guard(ctx context.Context, bp *blockedPod, evictErr error) (bool, error) {
	var answer apierrors.APIStatus
	if !errors.As(evictErr, &answer) && !errors.Is(evictErr, context.DeadlineExceeded) {
		return true, fmt.Errorf("evicting pod %s/%s: %w", bp.Namespace, bp.Name, evictErr)
	}
	bp.Refused, bp.Refusal = true, text.Reason(evictErr.Error())
	s.refusals[bp.UID] = bp.Refusal
	hold := bp.Hold(s.d)
	bp.heldBy, bp.reason = hold.Reason, forceReason(bp.DrainedPod, hold.Reason, s.attempt.PDBTimeoutField)
	if at := hold.ForcedAt(); at.IsZero() || s.now.Before(at) {
		return true, s.publishRefused(ctx, *bp, at)
	}
	return false, nil
}

// isGone reports whether the pod no longer exists, even if another pod now has its name.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
