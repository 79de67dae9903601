// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// defaultLease is the interval at which an agent renews its Lease if the ManagedCluster does not set
// another.
const defaultLease = time.Minute

// LeaseGrace returns how long the hub waits for a renewal of a cluster's Lease before it reports the
// cluster as unreachable.
func LeaseGrace(cluster *clusterv1.ManagedCluster) time.Duration {
	lease := time.Duration(cluster.Spec.LeaseDurationSeconds) * time.Second
	if lease == 0 {
		lease = defaultLease
	}
	return 5 * lease
}

// SetAvailability sets the condition Available of a cluster and the matching taint. The hub reports a
// cluster as unreachable if its agent renewed its Lease too long ago. Otherwise, healthy is what the
// agent reports about the API server of the cluster.
func SetAvailability(cluster *clusterv1.ManagedCluster, healthy bool, renewed, now time.Time) {
	available := metav1.Condition{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "ManagedClusterAvailable"}
	taint := ""
	switch {
	case !now.Before(renewed.Add(LeaseGrace(cluster))):
		available.Status, available.Reason = metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped"
		taint = clusterv1.ManagedClusterTaintUnreachable
	case !healthy:
		available.Status, available.Reason = metav1.ConditionFalse, "ManagedClusterKubeAPIServerUnavailable"
		taint = clusterv1.ManagedClusterTaintUnavailable
	}
	available.LastTransitionTime = second(now)
	apimeta.SetStatusCondition(&cluster.Status.Conditions, available)
	cluster.Spec.Taints = slices.DeleteFunc(cluster.Spec.Taints, func(t clusterv1.Taint) bool {
		return t.Key != taint && (t.Key == clusterv1.ManagedClusterTaintUnreachable || t.Key == clusterv1.ManagedClusterTaintUnavailable)
	})
	if taint != "" && !slices.ContainsFunc(cluster.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == taint }) {
		cluster.Spec.Taints = append(cluster.Spec.Taints, clusterv1.Taint{Key: taint, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: second(now)})
	}
}
