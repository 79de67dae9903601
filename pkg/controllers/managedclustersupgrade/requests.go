// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"maps"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// runRequests requests a pass over the upgrade that a run belongs to, and over the dry runs that check
// its cluster.
func (r *Reconciler) runRequests(ctx context.Context, object client.Object) []reconcile.Request {
	run, ok := object.(*fleetv1alpha1.ClusterUpgradeRun)
	if !ok {
		return nil
	}
	ref := &run.Spec.ManagedClustersUpgrade
	requests := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
	isDryRun := func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return u.Spec.DryRun && string(u.UID) != ref.UID }
	if len(r.requests(ctx, isDryRun)) == 0 {
		return requests
	}
	uses, err := r.selecting(ctx, run.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the PlacementDecisions that select a cluster", "cluster", run.Namespace)
		return requests
	}
	return append(requests, r.requests(ctx, func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return isDryRun(u) && uses(u) })...)
}

// upgradeRequests requests a pass over an upgrade and over those that depend on it.
func (r *Reconciler) upgradeRequests(ctx context.Context, object client.Object) []reconcile.Request {
	requests := manager.Self(ctx, object)
	for _, request := range r.requests(ctx, func(other *fleetv1beta1.ManagedClustersUpgrade) bool {
		return other.Namespace == object.GetNamespace() && dependsOn(other, object.GetName())
	}) {
		if request != requests[0] {
			requests = append(requests, request)
		}
	}
	return requests
}

func dependsOn(upgrade *fleetv1beta1.ManagedClustersUpgrade, name string) bool {
	return slices.ContainsFunc(upgrade.Spec.DependsOn, func(d fleetv1beta1.Dependency) bool { return d.Name == name })
}

// placementRequests requests a pass over the upgrades that use a Placement.
func (r *Reconciler) placementRequests(ctx context.Context, object client.Object) []reconcile.Request {
	return r.requests(ctx, usesOneOf(map[types.NamespacedName]bool{client.ObjectKeyFromObject(object): true}))
}

// decisionRequests requests a pass over the upgrades that use the Placement of a decision.
func (r *Reconciler) decisionRequests(ctx context.Context, object client.Object) []reconcile.Request {
	return r.requests(ctx, usesOneOf(map[types.NamespacedName]bool{placementOf(object): true}))
}

// clusterRequests requests a pass over the upgrades that select a cluster, or that have a run on it.
func (r *Reconciler) clusterRequests(ctx context.Context, object client.Object) []reconcile.Request {
	var runs fleetv1alpha1.ClusterUpgradeRunList
	uses, err := r.selecting(ctx, object.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the PlacementDecisions that select a cluster", "cluster", object.GetName())
		return nil
	}
	if err := r.client.List(ctx, &runs, client.InNamespace(object.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the ClusterUpgradeRuns of a cluster", "cluster", object.GetName())
		return nil
	}
	begun := map[types.UID]bool{}
	for i := range runs.Items {
		begun[types.UID(runs.Items[i].Spec.ManagedClustersUpgrade.UID)] = true
	}
	return r.requests(ctx, func(u *fleetv1beta1.ManagedClustersUpgrade) bool { return begun[u.UID] || uses(u) })
}

// selecting returns whether an upgrade selects a cluster by a Placement.
func (r *Reconciler) selecting(ctx context.Context, cluster string) (func(*fleetv1beta1.ManagedClustersUpgrade) bool, error) {
	var decisions ocmv1beta1.PlacementDecisionList
	if err := r.client.List(ctx, &decisions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	placements := map[types.NamespacedName]bool{}
	for i := range decisions.Items {
		if slices.ContainsFunc(decisions.Items[i].Status.Decisions, func(d ocmv1beta1.ClusterDecision) bool {
			return d.ClusterName == cluster
		}) {
			placements[placementOf(&decisions.Items[i])] = true
		}
	}
	return usesOneOf(placements), nil
}

// placementOf returns the Placement that a PlacementDecision belongs to.
func placementOf(decision client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: decision.GetNamespace(), Name: decision.GetLabels()[ocmv1beta1.PlacementLabel]}
}

// usesOneOf returns whether an upgrade selects its clusters by one of the Placements.
func usesOneOf(placements map[types.NamespacedName]bool) func(*fleetv1beta1.ManagedClustersUpgrade) bool {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) bool {
		if u.Spec.ClusterSelector != nil && placements[types.NamespacedName{Namespace: u.Namespace, Name: selection.PlacementName(u)}] {
			return true
		}
		return slices.ContainsFunc(selection.References(u), func(ref fleetv1beta1.PlacementReference) bool {
			return placements[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}]
		})
	}
}

// requests returns a request for each upgrade that satisfies a condition; nil means each upgrade.
func (r *Reconciler) requests(ctx context.Context, include func(*fleetv1beta1.ManagedClustersUpgrade) bool) []reconcile.Request {
	return manager.Requests(ctx, r.client, &fleetv1beta1.ManagedClustersUpgradeList{}, include)
}

// clusterChanged passes changes of a ManagedCluster that decide about admission or about a dry run. Other
// conditions, resources, and other claims decide about nothing.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isOld := e.ObjectOld.(*clusterv1.ManagedCluster)
		after, isNew := e.ObjectNew.(*clusterv1.ManagedCluster)
		return !isOld || !isNew || before.UID != after.UID ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Spec.HubAcceptsClient != after.Spec.HubAcceptsClient || isAvailable(before) != isAvailable(after) ||
			!maps.Equal(before.Labels, after.Labels) || holdOf(before) != holdOf(after) ||
			!maps.Equal(admission.Claims(before), admission.Claims(after))
	}}
}

func isAvailable(cluster *clusterv1.ManagedCluster) bool {
	return apimeta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
}

// hold is the annotation that holds a cluster.
type hold struct {
	reason string
	held   bool
}

func holdOf(cluster *clusterv1.ManagedCluster) hold {
	reason, held := cluster.Annotations[v1alpha1.HoldAnnotation]
	return hold{reason, held}
}
