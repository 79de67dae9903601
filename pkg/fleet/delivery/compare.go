// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// Change is what must be written so that a work is delivered.
type Change string

const (
	// ChangeNone means that this attempt has delivered the work in this form, maybe by another release
	// of the hub, which builds another work: it is not rewritten. The work of a preflight, which changes
	// nothing, is rewritten if it observes less.
	ChangeNone Change = "None"
	// ChangeCreate means that there is no such work.
	ChangeCreate Change = "Create"
	// ChangeUpdate means that the work has another form, or is of an earlier attempt.
	ChangeUpdate Change = "Update"
	// ChangeWait means that the work is being deleted, and must be gone first.
	ChangeWait Change = "Wait"
	// ChangeForeign means that the work belongs to another ManagedClustersUpgrade, or to a user. It is
	// left alone.
	ChangeForeign Change = "Foreign"
)

// Compare returns what must be written. existing is nil if there is no such work.
func Compare(existing, desired *workv1.ManifestWork) Change {
	switch {
	case existing == nil:
		return ChangeCreate
	case existing.Labels[fleetv1beta1.UpgradeLabel] != desired.Labels[fleetv1beta1.UpgradeLabel]:
		return ChangeForeign
	case !existing.DeletionTimestamp.IsZero():
		return ChangeWait
	case existing.Annotations[Annotation] != desired.Annotations[Annotation]:
		return ChangeUpdate
	}
	return ChangeNone
}

// Merge returns the existing work with the spec, the labels, and the annotations of the desired one, for
// a patch of what differs. What others have added to its metadata stays.
func Merge(existing, desired *workv1.ManifestWork) *workv1.ManifestWork {
	merged := existing.DeepCopy()
	merged.Labels, merged.Annotations = union(merged.Labels, desired.Labels), union(merged.Annotations, desired.Annotations)
	merged.Spec = *desired.Spec.DeepCopy()
	return merged
}

func union(base, more map[string]string) map[string]string {
	if base == nil {
		base = map[string]string{}
	}
	maps.Copy(base, more)
	return base
}

// KeepsClusterVersion reports whether the ClusterVersion of the cluster stays when a work is deleted: the
// work has the rule that orphans it, or does not contain it. A user may have edited the work. A manifest
// that cannot be decoded counts as a ClusterVersion.
func KeepsClusterVersion(work *workv1.ManifestWork) bool {
	if !HasClusterVersion(work) {
		return true
	}
	option := work.Spec.DeleteOption
	if option == nil {
		return false
	}
	switch option.PropagationPolicy {
	case workv1.DeletePropagationPolicyTypeOrphan:
		return true
	case workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		return option.SelectivelyOrphan != nil && slices.Contains(option.SelectivelyOrphan.OrphaningRules, workv1.OrphaningRule(clusterVersionID))
	case workv1.DeletePropagationPolicyTypeForeground:
	}
	return false
}

// KeepClusterVersion returns a copy of a work whose deletion keeps the ClusterVersion. Other objects
// that its deletion kept are kept, too.
func KeepClusterVersion(work *workv1.ManifestWork) *workv1.ManifestWork {
	repaired := work.DeepCopy()
	repaired.Spec.DeleteOption = orphan(clusterVersionID)
	if option := work.Spec.DeleteOption; option != nil && option.SelectivelyOrphan != nil {
		rules := &repaired.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules
		*rules = append(*rules, option.SelectivelyOrphan.OrphaningRules...)
	}
	return repaired
}

// HasClusterVersion reports whether a work contains the ClusterVersion. A manifest that cannot be decoded
// counts as one.
func HasClusterVersion(work *workv1.ManifestWork) bool {
	return slices.ContainsFunc(work.Spec.Workload.Manifests, isClusterVersion)
}

func isClusterVersion(manifest workv1.Manifest) bool {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest.Raw, &object); err != nil {
		return true
	}
	return object.GroupVersionKind().Group == clusterVersionID.Group && object.Kind == "ClusterVersion"
}
