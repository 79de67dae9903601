// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet is the folder of what the hub of fleets knows: which clusters are selected, what is
// delivered to them, and what they report. It contains no code, only the permissions that several parts
// of the hub share.
//
// The hub may write works that name an executor (execute-as), as those of actions do if their users name
// one. It reads no Secret. A Lease cannot be granted by its name before it exists, so the creation of
// Leases is granted in all namespaces.
//
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=list;watch;create;patch;delete;execute-as
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades/status,verbs=patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=cluster-upgrade,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-hub-leader,verbs=get;update
package fleet
