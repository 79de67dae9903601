// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package facts declares the kinds that provide the facts of package clusterstate. The controllers
// of all kinds of upgrades share it. It reads nothing itself.
package facts

import (
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// AddToScheme returns the functions that register the kinds of Watches.
func AddToScheme() []func(*runtime.Scheme) error {
	return []func(*runtime.Scheme) error{configv1.Install, mcfgv1.Install, corev1.AddToScheme, policyv1.AddToScheme}
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch

// Watches declares the kinds that provide the facts about a cluster. A change may affect any
// upgrade of the cluster, whatever its kind.
func Watches() []manager.Kind {
	return []manager.Kind{
		{
			Object: &configv1.ClusterVersion{}, ClusterScoped: true, Name: clusterstate.VersionKey.Name,
			Transform: clusterstate.StripClusterVersion, Predicates: []predicate.Predicate{versionChangedPredicate{}},
		},
		{Object: &configv1.ClusterOperator{}, ClusterScoped: true, Transform: clusterstate.StripClusterOperator},
		{Object: &mcfgv1.MachineConfigPool{}, ClusterScoped: true, Transform: clusterstate.StripPool},
		{
			Object: &corev1.Node{}, ClusterScoped: true, Transform: clusterstate.StripNode,
			Predicates: []predicate.Predicate{nodeChangedPredicate{}},
		},
		{
			Object: &policyv1.PodDisruptionBudget{}, Transform: clusterstate.StripPDB,
			Predicates: []predicate.Predicate{pdbChangedPredicate{}},
		},
	}
}

// versionChangedPredicate passes changes of the ClusterVersion that controllers read. The fence of
// an upgrade changes nothing else. If it triggered another pass, an upgrade that cannot save its
// record would write fences in a tight loop.
type versionChangedPredicate struct{ predicate.Funcs }

// Update compares two stripped ClusterVersions.
func (versionChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*configv1.ClusterVersion)
	after, okAfter := e.ObjectNew.(*configv1.ClusterVersion)
	if !ok || !okAfter {
		return true
	}
	return before.UID != after.UID || before.Generation != after.Generation ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(before.Status, after.Status)
}

// pdbChangedPredicate passes PodDisruptionBudgets that start or stop blocking drains. Their counts
// change with every pod.
type pdbChangedPredicate struct{ predicate.Funcs }

// Update compares two states of a PodDisruptionBudget.
func (pdbChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*policyv1.PodDisruptionBudget)
	after, okAfter := e.ObjectNew.(*policyv1.PodDisruptionBudget)
	if !ok || !okAfter {
		return true
	}
	oldPDB, newPDB := clusterstate.PDBOf(before), clusterstate.PDBOf(after)
	return oldPDB.EvictionBlock() != newPDB.EvictionBlock()
}

// nodeChangedPredicate passes all changes of a node but heartbeats.
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
