// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the addition to the API group cluster.open-cluster-management.io that
// upgrades a fleet: a ManagedClustersUpgrade selects managed clusters of Open Cluster Management,
// defines what they are upgraded to and in which order, and counts how far they are.
//
// The package contains types and names. Each cluster has a ClusterUpgradeRun, which is in package
// api/fleet/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1
