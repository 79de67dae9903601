// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// The reasons of the Events.
const (
	reasonForced      = "DrainForced"
	reasonStuck       = "DrainBlocked"
	reasonTimeUnknown = "DrainTimeUnknown"
	reasonUnreadable  = "BudgetUnreadable"
)

// Teller tells of drains. What it is told of twice with the same id reaches the
// eye of the receiver once.
type Teller interface {
	// Notify tells one thing about the subject.
	Notify(ctx context.Context, subject corev1.ObjectReference, n engine.Notice) error
	// Forget drops what was told about a subject that is over or gone.
	Forget(uid string)
}

// tellForced tells of a pod that is being forced.
func (l *look) tellForced(ctx context.Context, t task) error {
	return l.tellOf(ctx, t, reasonForced, "is being deleted, so that node "+l.node.Name+" can be drained for the upgrade to "+l.upgrade.version)
}

// tellStuck tells of a pod that cannot be forced.
func (l *look) tellStuck(ctx context.Context, t task) error {
	return l.tellOf(ctx, t, reasonStuck, "holds up the drain of node "+l.node.Name+" and cannot be forced")
}

// tellOf tells of a pod, on the pod and on the node.
func (l *look) tellOf(ctx context.Context, t task, reason, what string) error {
	id := l.upgrade.id(t.UID, reason+" "+string(t.hold)+" "+string(l.node.UID))
	message := "pod " + t.Namespace + "/" + t.Name + " " + what + ": " + t.why
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: t.Namespace, Name: t.Name, UID: t.UID}
	return errors.Join(l.tell(ctx, l.node, pod, id, reason, message), l.tell(ctx, l.node, aboutNode(l.node), id, reason, message))
}

// tellUnreadable tells of a budget that cannot be read, on the node.
func (l *look) tellUnreadable(ctx context.Context, b cluster.Budget) error {
	name := b.Namespace + "/" + b.Name
	return l.tell(ctx, l.node, aboutNode(l.node), l.upgrade.id(l.node.UID, reasonUnreadable+" "+name), reasonUnreadable,
		"PodDisruptionBudget "+name+" guards no pod, since its selector cannot be read: "+b.Wrong)
}

// tell tells one thing on account of a node. What may not be told, for example
// in a namespace that is being deleted, is logged: that is no reason to wait.
func (r *Reconciler) tell(ctx context.Context, node *corev1.Node, about corev1.ObjectReference, id, reason, message string) error {
	r.drains.told(node.Name, string(about.UID))
	err := r.Events.Notify(ctx, about, engine.Notice{ID: id, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
	if refused(err) {
		ctrl.LoggerFrom(ctx).Error(err, "an Event was refused", "message", message)
		return nil
	}
	return err
}

// forget drops what is remembered and shown of a node that is not being drained.
func (r *Reconciler) forget(node string) {
	for uid := range r.drains.forget(node) {
		r.Events.Forget(uid)
	}
	r.Metrics.Blocked(node, false)
}

func aboutNode(node *corev1.Node) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}
