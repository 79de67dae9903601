// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Action is when an action is applied to a cluster.
type Action string

// Actions of an upgrade.
const (
	PreUpgrade  Action = "pre"
	PostUpgrade Action = "post"
)

// ActionWork returns the work of an action for the cluster of a run; nil if there is no such action. Its deletion keeps the
// ClusterVersion, whatever the deleteOption of the user is.
func ActionWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) (*workv1.ManifestWork, error) {
	if !HasAction(mcu, action) {
		return nil, nil
	}
	spec, err := actionSpec(mcu, action, fmt.Sprint(run.Spec.Attempt))
	if err != nil {
		return nil, err
	}
	work := newWork(run, ActionName(run.Spec.ManagedClustersUpgrade.UID, action), FormApply)
	work.Spec = *spec
	if !KeepsClusterVersion(work) {
		work = KeepClusterVersion(work)
	}
	return work, nil
}

// HasAction reports whether an upgrade has an action.
func HasAction(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) bool {
	return sourceOf(mcu, action) != nil
}

func sourceOf(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) *fleetv1beta1.UpgradeAction {
	if action == PostUpgrade {
		return mcu.Spec.PostUpgradeAction
	}
	return mcu.Spec.PreUpgradeAction
}

// actionSpec returns the spec of the work of an action in an attempt, with the result of each Job in its feedback.
//
// Each Job gets a name of its own for the upgrade, the action, and the attempt: the agent adopts an object that exists, and
// a Job that another work has left would count as the result of this one.
func actionSpec(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action, attempt string) (*workv1.ManifestWorkSpec, error) {
	spec := sourceOf(mcu, action).ManifestWork.DeepCopy()
	suffix := "-" + text.Hash(strings.Join([]string{string(mcu.UID), string(action), attempt}, "\n"), 4)
	var jobs []workv1.ManifestConfigOption
	for i := range spec.Workload.Manifests {
		var manifest unstructured.Unstructured
		if err := utiljson.Unmarshal(spec.Workload.Manifests[i].Raw, &manifest.Object); err != nil {
			return nil, fmt.Errorf("decoding manifest %d of the %s-upgrade action: %w", i, action, err)
		}
		if manifest.GroupVersionKind().Group != "batch" || manifest.GetKind() != "Job" {
			continue
		}
		user := workv1.ManifestResourceMeta{Group: "batch", Resource: "jobs", Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
		manifest.SetName(manifest.GetName()[:min(len(manifest.GetName()), maxJobName-len(suffix))] + suffix)
		raw, err := json.Marshal(manifest.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding manifest %d of the %s-upgrade action: %w", i, action, err)
		}
		spec.Workload.Manifests[i].Raw = raw
		jobs = append(jobs, jobConfig(&user, manifest.GetName(), spec.ManifestConfigs))
		orphanAs(spec.DeleteOption, &user, manifest.GetName())
	}
	// The agent uses the first configuration that matches and has rules or a strategy.
	spec.ManifestConfigs = append(jobs, spec.ManifestConfigs...)
	return spec, nil
}

const maxJobName = 63 // the longest name of a Job whose pods have its name as a label

// jobConfig returns the configuration of a renamed Job: what the user wants, and the feedback about its result.
func jobConfig(user *workv1.ManifestResourceMeta, name string, configs []workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	option := workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: user.Group, Resource: user.Resource, Namespace: user.Namespace, Name: name},
		FeedbackScrapeType: workv1.FeedbackPollType,
	}
	for i := range configs {
		config := configs[i].DeepCopy()
		if !Matches(user, &config.ResourceIdentifier) {
			continue
		}
		if len(option.FeedbackRules) == 0 {
			option.FeedbackRules = config.FeedbackRules
		}
		if len(option.ConditionRules) == 0 {
			option.ConditionRules = config.ConditionRules
		}
		if option.UpdateStrategy == nil {
			option.UpdateStrategy = config.UpdateStrategy
		}
	}
	option.FeedbackRules = append(option.FeedbackRules, ActionJobRules()...)
	return option
}

// orphanAs adds a rule of the user that keeps a Job with its other name.
func orphanAs(option *workv1.DeleteOption, user *workv1.ManifestResourceMeta, name string) {
	rule := workv1.OrphaningRule{Group: user.Group, Resource: user.Resource, Namespace: user.Namespace, Name: user.Name}
	if option == nil || option.SelectivelyOrphan == nil || !slices.Contains(option.SelectivelyOrphan.OrphaningRules, rule) {
		return
	}
	rule.Name = name
	option.SelectivelyOrphan.OrphaningRules = append(option.SelectivelyOrphan.OrphaningRules, rule)
}

const replicaSetLabel = workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey // on each work of a ManifestWorkReplicaSet

// IsOfReplicaSet reports whether a ManifestWorkReplicaSet creates and deletes a work. Such a work has no annotation of ours:
// it is on the PlacementDecision that lists the cluster.
func IsOfReplicaSet(work *workv1.ManifestWork) bool { return work.Labels[replicaSetLabel] != "" }

// ByReplicaSet returns the work of an action as a ManifestWorkReplicaSet creates it, or unchanged if no set can create it:
// the label with the names of the namespace and of the set would be too long, or the work contains the ClusterVersion, and
// only the run can prevent its deletion.
func ByReplicaSet(mcu *fleetv1beta1.ManagedClustersUpgrade, work *workv1.ManifestWork) *workv1.ManifestWork {
	set := mcu.Namespace + "." + work.Name
	if len(set) > validation.LabelValueMaxLength || HasClusterVersion(work) {
		return work
	}
	work = work.DeepCopy()
	work.Labels[replicaSetLabel] = set
	return work
}

// ActionPlacement returns the Placement of the clusters with an action. Only the hub selects clusters for it, by a
// PlacementDecision for each: an action is on no cluster whose run has not reached it.
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

// ActionReplicaSet returns the set that applies an action to the clusters of a Placement. Its works have its labels.
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

// ActionDecision returns the PlacementDecision that lists the cluster of a work, without its status.
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

// ActionDecisionName returns the name of the PlacementDecision that lists a cluster for an action.
func ActionDecisionName(action, cluster string) string { return action + "-" + cluster }

func ownedBy(placement *ocmv1beta1.Placement) []metav1.OwnerReference {
	owner := metav1.NewControllerRef(placement, schema.GroupVersionKind{Group: ocmv1beta1.GroupName, Version: "v1beta1", Kind: "Placement"})
	owner.BlockOwnerDeletion = nil // needs permissions on the finalizers of Placements
	return []metav1.OwnerReference{*owner}
}
