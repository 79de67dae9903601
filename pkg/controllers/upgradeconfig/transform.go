// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// StripNode removes what no step reads before a node is cached: above all the heartbeats, and the
// list of images, which is most of its size.
func StripNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	node.ManagedFields = nil
	var conditions []corev1.NodeCondition
	for _, c := range node.Status.Conditions {
		c.LastHeartbeatTime = metav1.Time{}
		conditions = append(conditions, c)
	}
	node.Status = corev1.NodeStatus{Conditions: conditions}
	return node, nil
}

// nodeChangedPredicate passes changes of a node other than heartbeats.
type nodeChangedPredicate struct{ predicate.Funcs }

// Update compares two trimmed nodes.
func (nodeChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, okAfter := e.ObjectNew.(*corev1.Node)
	if !ok || !okAfter {
		return true
	}
	return !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(before.Status, after.Status)
}
