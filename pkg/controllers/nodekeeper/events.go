// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The reasons of the Events.
const (
	reasonDrainForced      = "DrainForced"
	reasonDrainBlocked     = "DrainBlocked"
	reasonDrainTimeUnknown = "DrainTimeUnknown"
	reasonBudgetUnreadable = "BudgetUnreadable"
)

// EventPublisher tells of drains. What it is told of twice with the same id reaches the
// eye of the receiver once.
type EventPublisher interface {
	// Publish tells one thing about the subject.
	Publish(ctx context.Context, subject corev1.ObjectReference, n engine.Notification) error
	// Reset drops what was told about a subject that is over or gone.
	Reset(uid string)
}

// publishForced tells of a pod that is being forced.
func (s *drainScope) publishForced(ctx context.Context, bp blockedPod) error {
	return s.publishForPod(ctx, bp, reasonDrainForced, "is being deleted, so that node "+s.node.Name+" can be drained for the upgrade to "+s.upgrade.version)
}

// publishCannotForce tells of a pod that cannot be forced.
func (s *drainScope) publishCannotForce(ctx context.Context, bp blockedPod) error {
	return s.publishForPod(ctx, bp, reasonDrainBlocked, "holds up the drain of node "+s.node.Name+" and cannot be forced")
}

// publishForPod tells of a pod, on the pod and on the node.
func (s *drainScope) publishForPod(ctx context.Context, bp blockedPod, reason, text string) error {
	id := s.upgrade.notificationID(bp.UID, reason+" "+string(bp.blockedBy)+" "+string(s.node.UID))
	message := "pod " + bp.Namespace + "/" + bp.Name + " " + text + ": " + bp.reason
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: bp.Namespace, Name: bp.Name, UID: bp.UID}
	return errors.Join(s.publish(ctx, s.node, pod, id, reason, message), s.publish(ctx, s.node, nodeRef(s.node), id, reason, message))
}

// publishInvalidPDB tells of a budget that cannot be read, on the node.
func (s *drainScope) publishInvalidPDB(ctx context.Context, b clusterstate.PDB) error {
	name := b.Namespace + "/" + b.Name
	return s.publish(ctx, s.node, nodeRef(s.node), s.upgrade.notificationID(s.node.UID, reasonBudgetUnreadable+" "+name), reasonBudgetUnreadable,
		"PodDisruptionBudget "+name+" guards no pod, since its selector cannot be read: "+b.SelectorError)
}

// publish tells one thing on account of a node. What may not be told, for example
// in a namespace that is being deleted, is logged: that is no reason to wait.
func (r *Reconciler) publish(ctx context.Context, node *corev1.Node, ref corev1.ObjectReference, id, reason, message string) error {
	r.drains.recordNotified(node.Name, string(ref.UID))
	err := r.Events.Publish(ctx, ref, engine.Notification{ID: id, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
	if isPermanentClientError(err) {
		ctrl.LoggerFrom(ctx).Error(err, "an Event was refused", "message", message)
		return nil
	}
	return err
}

// clearNode drops what is remembered and shown of a node that is not being drained.
func (r *Reconciler) clearNode(node string) {
	for uid := range r.drains.delete(node) {
		r.Events.Reset(uid)
	}
	r.Metrics.SetBlocked(node, false)
}

func nodeRef(node *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}
