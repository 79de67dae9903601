// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// The owner references of Placements block the deletion of their owner. OpenShift permits that only to clients that may
// update the finalizers of the owner.
//
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements,verbs=create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades/finalizers,verbs=update

// PlacementName returns the name of the Placement that the hub creates for clusterSelector.
func PlacementName(mcu *fleetv1beta1.ManagedClustersUpgrade) string {
	uid := string(mcu.UID)
	return "mcu-" + uid[:min(8, len(uid))]
}

// Placement returns the Placement that selects the clusters of clusterSelector; nil if there is no clusterSelector. It is in
// the namespace of the ManagedClustersUpgrade, whose cluster set bindings apply. Clusters that are unreachable or
// unavailable stay selected.
func Placement(mcu *fleetv1beta1.ManagedClustersUpgrade) *ocmv1beta1.Placement {
	selector := mcu.Spec.ClusterSelector
	if selector == nil {
		return nil
	}
	p := &ocmv1beta1.Placement{
		TypeMeta: metav1.TypeMeta{APIVersion: ocmv1beta1.GroupVersion.String(), Kind: "Placement"},
		ObjectMeta: metav1.ObjectMeta{
			Name: PlacementName(mcu), Namespace: mcu.Namespace,
			Labels:          map[string]string{fleetv1beta1.UpgradeLabel: string(mcu.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mcu, fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))},
		},
		Spec: ocmv1beta1.PlacementSpec{
			ClusterSets:       slices.Clone(selector.ClusterSets),
			PrioritizerPolicy: ocmv1beta1.PrioritizerPolicy{Mode: ocmv1beta1.PrioritizerPolicyModeAdditive},
			Tolerations: []ocmv1beta1.Toleration{
				{Key: clusterv1.ManagedClusterTaintUnreachable, Operator: ocmv1beta1.TolerationOpExists},
				{Key: clusterv1.ManagedClusterTaintUnavailable, Operator: ocmv1beta1.TolerationOpExists},
			},
		},
	}
	if predicate, restricts := predicateOf(selector.LabelSelector); restricts {
		p.Spec.Predicates = []ocmv1beta1.ClusterPredicate{predicate}
	}
	if strategy := mcu.Spec.UpgradeStrategy.DecisionStrategy; strategy != nil {
		p.Spec.DecisionStrategy = *strategy.DeepCopy()
	}
	if perGroup := &p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup; *perGroup == (intstr.IntOrString{}) {
		*perGroup = intstr.FromString("100%") // the default of a Placement
	}
	return p
}

// ChangedAnnotation is when the spec of a Placement was last changed: its status has no observed generation.
const ChangedAnnotation = "upgrade.managed.openshift.io/spec-changed"

const settleTime = time.Minute // how long the decisions of a Placement may reflect its earlier spec

// EnsurePlacement creates or changes the Placement of clusterSelector, and deletes it once there is no clusterSelector. It
// reads from the cache, and writes only what differs. A Placement of that name with another owner is an error.
func EnsurePlacement(ctx context.Context, c client.Client, mcu *fleetv1beta1.ManagedClustersUpgrade, now time.Time) error {
	if !mcu.DeletionTimestamp.IsZero() {
		return nil // The garbage collector deletes it.
	}
	desired, existing := Placement(mcu), &ocmv1beta1.Placement{}
	err := c.Get(ctx, client.ObjectKey{Namespace: mcu.Namespace, Name: PlacementName(mcu)}, existing)
	owned := metav1.IsControlledBy(existing, mcu)
	switch {
	case apierrors.IsNotFound(err):
		if desired == nil {
			return nil
		}
		if err := c.Create(ctx, desired); err != nil {
			return fmt.Errorf("creating the placement of clusterSelector: %w", err)
		}
	case err != nil:
		return fmt.Errorf("reading the placement of clusterSelector: %w", err)
	case desired == nil && owned:
		if err := client.IgnoreNotFound(c.Delete(ctx, existing, client.Preconditions{UID: &existing.UID})); err != nil {
			return fmt.Errorf("deleting the placement of clusterSelector: %w", err)
		}
	case desired != nil && !owned:
		return fmt.Errorf("placement %s/%s exists and does not belong to this object: delete it", existing.Namespace, existing.Name)
	case desired != nil && NeedsUpdate(existing, desired):
		changed := existing.DeepCopy()
		sortBy, rateLimit := changed.Spec.SortBy, changed.Spec.ScoreRateLimit
		changed.Spec = desired.Spec
		changed.Spec.SortBy, changed.Spec.ScoreRateLimit = sortBy, rateLimit
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, ChangedAnnotation, now.UTC().Format(time.RFC3339Nano))
		if err := c.Patch(ctx, changed, client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("changing the placement of clusterSelector: %w", err)
		}
	}
	return nil
}

// predicateOf returns the predicate of a selector, and whether it requires anything. Requirements of the key name become CEL
// expressions, because clusters need not have the label.
func predicateOf(selector fleetv1beta1.LabelSelector) (ocmv1beta1.ClusterPredicate, bool) {
	var required ocmv1beta1.ClusterSelector
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		value := selector.MatchLabels[key]
		if key == nameKey {
			required.CelSelector.CelExpressions = append(required.CelSelector.CelExpressions, nameIn(value))
			continue
		}
		required.LabelSelector.MatchLabels = labels.Merge(required.LabelSelector.MatchLabels, labels.Set{key: value})
	}
	for _, e := range selector.MatchExpressions {
		if e.Key == nameKey {
			required.CelSelector.CelExpressions = append(required.CelSelector.CelExpressions, nameExpression(e))
			continue
		}
		required.LabelSelector.MatchExpressions = append(required.LabelSelector.MatchExpressions, *e.DeepCopy())
	}
	restricts := len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
	return ocmv1beta1.ClusterPredicate{RequiredClusterSelector: required}, restricts
}

// nameValue is the CEL expression of the label name or, without it, of the name of a cluster.
const nameValue = `(has(managedCluster.metadata.labels) && "name" in managedCluster.metadata.labels ? managedCluster.metadata.labels["name"] : managedCluster.metadata.name)`

func nameIn(values ...string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return fmt.Sprintf("%s in [%s]", nameValue, strings.Join(quoted, ", "))
}

// nameExpression returns the CEL expression of a requirement of the key name. An unknown operator matches nothing.
func nameExpression(e metav1.LabelSelectorRequirement) string {
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return nameIn(e.Values...)
	case metav1.LabelSelectorOpNotIn:
		return "!(" + nameIn(e.Values...) + ")"
	case metav1.LabelSelectorOpExists:
		return "true"
	default:
		return "false"
	}
}

// NeedsUpdate reports whether the spec of an existing Placement differs from the desired one in what this package sets.
func NeedsUpdate(existing, desired *ocmv1beta1.Placement) bool {
	if desired == nil {
		return false
	}
	got := existing.Spec.DeepCopy()
	// Defaults of a Placement that this package does not set.
	got.SortBy, got.ScoreRateLimit = desired.Spec.SortBy, desired.Spec.ScoreRateLimit
	return !equality.Semantic.DeepEqual(*got, desired.Spec)
}
