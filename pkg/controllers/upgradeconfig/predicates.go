// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// pdbChangedPredicate passes PodDisruptionBudgets that start or stop blocking drains. Their counts
// change with every pod.
type pdbChangedPredicate struct{ predicate.Funcs }

// Update compares two states of a budget.
func (pdbChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*policyv1.PodDisruptionBudget)
	after, okAfter := e.ObjectNew.(*policyv1.PodDisruptionBudget)
	if !ok || !okAfter {
		return true
	}
	oldPDB, newPDB := clusterstate.PDBOf(before), clusterstate.PDBOf(after)
	return oldPDB.BlocksEviction != newPDB.BlocksEviction || oldPDB.Observed != newPDB.Observed
}

// nodeChangedPredicate passes changes of a node other than heartbeats.
type nodeChangedPredicate struct{ predicate.Funcs }

// Update compares two stripped nodes.
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
