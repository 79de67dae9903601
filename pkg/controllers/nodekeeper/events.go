// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reasons of Events.
const (
	reasonDrainForced      = "DrainForced"
	reasonDrainBlocked     = "DrainBlocked"
	reasonDrainTimeUnknown = "DrainTimeUnknown"
	reasonBudgetInvalid    = "BudgetInvalid"
)

// publishForced publishes an Event about a forced pod.
func (s *drainScope) publishForced(ctx context.Context, bp blockedPod) error {
	return s.publishForPod(ctx, bp, string(bp.heldBy), reasonDrainForced, "is deleted to drain node "+s.node.Name+" for the upgrade to "+s.attempt.Version)
}

// publishCannotForce publishes an Event about a pod that cannot be forced.
func (s *drainScope) publishCannotForce(ctx context.Context, bp blockedPod) error {
	return s.publishForPod(ctx, bp, string(bp.heldBy), reasonDrainBlocked, "blocks the drain of node "+s.node.Name+" and cannot be forced")
}

// publishRefused publishes an Event about a pod whose eviction is refused. at is when the pod is
// forced; zero if it never is.
func (s *drainScope) publishRefused(ctx context.Context, bp blockedPod, at time.Time) error {
	forced := "it will never be forced"
	if !at.IsZero() {
		forced = "it will be deleted at " + text.FormatTime(at) + ", when " + s.attempt.PDBTimeoutField + " expires"
	}
	bp.reason = "its eviction is refused; " + forced + ": " + bp.Refusal
	return s.publishForPod(ctx, bp, "refused", reasonDrainBlocked, "blocks the drain of node "+s.node.Name)
}

// publishForPod publishes an Event about a pod, on the pod and on the node, once for each key.
func (s *drainScope) publishForPod(ctx context.Context, bp blockedPod, key, reason, text string) error {
	id := s.attempt.notificationID(bp.UID, reason+" "+key+" "+string(s.node.UID))
	message := "pod " + bp.Namespace + "/" + bp.Name + " " + text + ": " + bp.reason
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: bp.Namespace, Name: bp.Name, UID: bp.UID}
	return errors.Join(s.publish(ctx, s.node, pod, id, reason, message), s.publish(ctx, s.node, nodeRef(s.node), id, reason, message))
}

// publishInvalidPDB publishes an Event on the node about a PDB with an invalid selector.
func (s *drainScope) publishInvalidPDB(ctx context.Context, b clusterstate.PDB) error {
	name := b.Namespace + "/" + b.Name
	return s.publish(ctx, s.node, nodeRef(s.node), s.attempt.notificationID(s.node.UID, reasonBudgetInvalid+" "+name), reasonBudgetInvalid,
		"PodDisruptionBudget "+name+" protects no pod, because its selector is invalid: "+b.SelectorError)
}

// publish publishes an Event because of a node. If the API server rejects the Event, for example
// because the namespace is being deleted, the error is logged and does not block the drain.
func (r *Reconciler) publish(ctx context.Context, node *corev1.Node, ref corev1.ObjectReference, id, reason, message string) error {
	r.drains.recordNotified(node.Name, string(ref.UID))
	return notify.TryPublish(ctx, r.Events, ref, engine.Notification{ID: id, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
}

// clearNode removes the state and the metrics of a node whose drain has ended.
func (r *Reconciler) clearNode(node string) {
	for uid := range r.drains.delete(node) {
		r.Events.Reset(uid)
	}
	r.Metrics.SetBlocked(node, false)
}

func nodeRef(node *corev1.Node) corev1.ObjectReference {
	return objects.Reference(node, corev1.SchemeGroupVersion.WithKind("Node"))
}
