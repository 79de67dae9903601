// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// placements simulates Open Cluster Management's placement controller. A few seconds after a
// change, it determines for each Placement which clusters have its labels.
type placements struct {
	fleet   *fleet
	client  client.Client
	pending bool
}

// observe records that decisions may change.
func (p *placements) observe(change simulation.Change) {
	switch change.Object().(type) {
	case *ocmv1beta1.Placement, *clusterv1.ManagedCluster:
	default:
		return
	}
	if change.Actor != "placement" {
		p.changed()
	}
}

// changed schedules a new decision.
func (p *placements) changed() {
	if p.pending {
		return
	}
	p.pending = true
	p.fleet.world.After(time.Second+p.fleet.upTo(5*time.Second), func() {
		p.pending = false
		p.decide()
	})
}

// decide updates the decisions of all Placements.
func (p *placements) decide() {
	ctx := context.Background()
	var all ocmv1beta1.PlacementList
	var clusters clusterv1.ManagedClusterList
	if p.client.List(ctx, &all) != nil || p.client.List(ctx, &clusters) != nil {
		return
	}
	for i := range all.Items {
		if err := p.decideOne(ctx, &all.Items[i], clusters.Items); err != nil {
			p.fleet.violate("the placement controller: %v", err)
		}
	}
}

// evicts reports whether a Placement excludes a cluster that has its labels, because the cluster
// has a taint that the Placement does not tolerate, or because its release is no longer selected.
func (p *placements) evicts(placement *ocmv1beta1.Placement, c *clusterv1.ManagedCluster) bool {
	tainted := slices.ContainsFunc(c.Spec.Taints, func(taint clusterv1.Taint) bool {
		return !slices.ContainsFunc(placement.Spec.Tolerations, func(t ocmv1beta1.Toleration) bool { return t.Key == taint.Key })
	})
	upgraded := p.fleet.byRelease && placement.Name == "all" && len(c.Status.ClusterClaims) > 0 && c.Status.ClusterClaims[0].Value != installed
	return tainted || upgraded
}

// placementOf returns the name of the Placement that selects the clusters of an upgrade.
func placementOf(u *fleetv1beta1.ManagedClustersUpgrade) string {
	if u.Spec.ClusterSelector != nil {
		return selection.PlacementName(u)
	}
	return "all"
}

// selects reports whether the decisions for an upgrade contain a cluster.
func (p *placements) selects(u *fleetv1beta1.ManagedClustersUpgrade, cluster string) bool {
	decision := &ocmv1beta1.PlacementDecision{}
	if err := p.client.Get(context.Background(), client.ObjectKey{Namespace: u.Namespace, Name: placementOf(u) + "-decision-1"}, decision); err != nil {
		return false
	}
	return slices.ContainsFunc(decision.Status.Decisions, func(d ocmv1beta1.ClusterDecision) bool { return d.ClusterName == cluster })
}

func (p *placements) decideOne(ctx context.Context, placement *ocmv1beta1.Placement, clusters []clusterv1.ManagedCluster) error {
	if !placement.DeletionTimestamp.IsZero() {
		return nil
	}
	selector := labels.Everything()
	for _, predicate := range placement.Spec.Predicates {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&predicate.RequiredClusterSelector.LabelSelector); err != nil {
			return err
		}
	}
	decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: placement.Namespace, Name: placement.Name + "-decision-1"}}
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(decision), decision); client.IgnoreNotFound(err) != nil {
		return err
	}
	if owner := metav1.GetControllerOf(decision); owner != nil && owner.UID != placement.UID {
		return nil // the set of an earlier Placement that has not been collected yet
	}
	if decision.UID == "" {
		decision.Labels = map[string]string{ocmv1beta1.PlacementLabel: placement.Name}
		decision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(placement, schema.GroupVersionKind{Group: ocmv1beta1.GroupVersion.Group, Version: ocmv1beta1.GroupVersion.Version, Kind: "Placement"})}
		if err := p.client.Create(ctx, decision); err != nil {
			return err
		}
	}
	decision.Status.Decisions = []ocmv1beta1.ClusterDecision{}
	for i := range clusters {
		if c := &clusters[i]; c.DeletionTimestamp.IsZero() && selector.Matches(labels.Set(c.Labels)) && !p.evicts(placement, c) {
			decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: c.Name})
		}
	}
	if err := p.client.Status().Update(ctx, decision); err != nil {
		return err
	}
	placement.Status.NumberOfSelectedClusters = int32(len(decision.Status.Decisions))
	apimeta.SetStatusCondition(&placement.Status.Conditions, metav1.Condition{
		Type: ocmv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled",
	})
	return p.client.Status().Update(ctx, placement)
}
