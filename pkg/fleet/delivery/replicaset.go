// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// replicaSetLabel is on each work of a ManifestWorkReplicaSet.
const replicaSetLabel = workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey

// IsOfReplicaSet reports whether a ManifestWorkReplicaSet creates and deletes a work. Such a work has no
// annotation of ours: the PlacementDecision that lists its cluster has it.
func IsOfReplicaSet(work *workv1.ManifestWork) bool { return work.Labels[replicaSetLabel] != "" }

// ByReplicaSet returns the work of an action as a ManifestWorkReplicaSet creates it. It returns the work
// unchanged if no set can create it: the label with the names of the namespace and of the set would be too
// long, or the work contains the ClusterVersion, whose deletion only the run can prevent.
func ByReplicaSet(mcu *fleetv1beta1.ManagedClustersUpgrade, work *workv1.ManifestWork) *workv1.ManifestWork {
	set := mcu.Namespace + "." + work.Name
	if len(set) > validation.LabelValueMaxLength || HasClusterVersion(work) {
		return work
	}
	work = work.DeepCopy()
	work.Labels[replicaSetLabel] = set
	return work
}

// ActionPlacement returns the Placement of the clusters with an action. Only the hub selects clusters for
// it, by a PlacementDecision for each: an action is on no cluster whose run has not reached it.
func ActionPlacement(mcu *fleetv1beta1.ManagedClustersUpgrade, name string) *ocmv1beta1.Placement {
	return &ocmv1beta1.Placement{
		TypeMeta: metav1.TypeMeta{APIVersion: ocmv1beta1.GroupVersion.String(), Kind: "Placement"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: mcu.Namespace, Name: name,
			Labels:          map[string]string{fleetv1beta1.UpgradeLabel: string(mcu.UID)},
			Annotations:     map[string]string{ocmv1beta1.PlacementDisableAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mcu, fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))},
		},
	}
}

// ActionReplicaSet returns the ManifestWorkReplicaSet that applies an action to the clusters of a Placement.
// Its works have its labels.
func ActionReplicaSet(placement *ocmv1beta1.Placement, work *workv1.ManifestWork) *workv1alpha1.ManifestWorkReplicaSet {
	return &workv1alpha1.ManifestWorkReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "ManifestWorkReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: placement.Namespace, Name: placement.Name, Labels: maps.Clone(placement.Labels),
			OwnerReferences: ownedBy(placement),
		},
		Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			ManifestWorkTemplate: *work.Spec.DeepCopy(),
			PlacementRefs: []workv1alpha1.LocalPlacementReference{{
				Name: placement.Name, RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All},
			}},
		},
	}
}

// ActionDecision returns the PlacementDecision that lists the cluster of a work. Its status is written after
// its creation.
func ActionDecision(placement *ocmv1beta1.Placement, work *workv1.ManifestWork) *ocmv1beta1.PlacementDecision {
	return &ocmv1beta1.PlacementDecision{
		TypeMeta: metav1.TypeMeta{APIVersion: ocmv1beta1.GroupVersion.String(), Kind: "PlacementDecision"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: placement.Namespace, Name: ActionDecisionName(work.Name, work.Namespace),
			Labels: map[string]string{
				ocmv1beta1.PlacementLabel: placement.Name, ocmv1beta1.DecisionGroupIndexLabel: "0",
				fleetv1beta1.UpgradeLabel: placement.Labels[fleetv1beta1.UpgradeLabel],
			},
			Annotations:     map[string]string{Annotation: work.Annotations[Annotation]},
			OwnerReferences: ownedBy(placement),
		},
	}
}

// ActionDecisionName returns the name of the PlacementDecision that lists a cluster for the action of a name.
func ActionDecisionName(action, cluster string) string { return action + "-" + cluster }

var placementKind = schema.GroupVersionKind{Group: ocmv1beta1.GroupName, Version: "v1beta1", Kind: "Placement"}

func ownedBy(placement *ocmv1beta1.Placement) []metav1.OwnerReference {
	owner := metav1.NewControllerRef(placement, placementKind)
	owner.BlockOwnerDeletion = nil // which would need permissions on the finalizers of Placements
	return []metav1.OwnerReference{*owner}
}
