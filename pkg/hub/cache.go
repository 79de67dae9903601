// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// trimmed returns the controllers with caches that hold only what the hub reads of large objects. A
// controller that declares a transform of its own keeps it.
func trimmed(controllers ...manager.Controller) []manager.Controller {
	for i := range controllers {
		reads := slices.Clone(controllers[i].Reads)
		for j := range reads {
			if _, is := reads[j].Object.(*clusterv1.ManagedCluster); is && reads[j].Transform == nil {
				reads[j].Transform = trimCluster
			}
		}
		controllers[i].Reads = reads
	}
	return controllers
}

// trimCluster keeps the metadata and the claims of a ManagedCluster, whether the hub accepts it, and
// whether it is available. Its certificates, its capacity, and its other conditions are not read.
func trimCluster(object any) (any, error) {
	cluster, is := object.(*clusterv1.ManagedCluster)
	if !is {
		return object, nil
	}
	cluster.ManagedFields = nil
	cluster.Spec = clusterv1.ManagedClusterSpec{HubAcceptsClient: cluster.Spec.HubAcceptsClient}
	conditions := slices.DeleteFunc(cluster.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type != clusterv1.ManagedClusterConditionAvailable
	})
	cluster.Status = clusterv1.ManagedClusterStatus{ClusterClaims: cluster.Status.ClusterClaims, Conditions: conditions}
	return cluster, nil
}
