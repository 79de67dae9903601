// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains an addition to the API group cluster.open-cluster-management.io that upgrades a
// fleet: a ManagedClustersUpgrade selects managed clusters of Open Cluster Management, defines their target
// and order, and counts their progress.
//
// The package contains only types and names. The ClusterUpgradeRun of each cluster is in package
// api/fleet/v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1
