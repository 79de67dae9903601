// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is the list of the controllers of the hub of fleets, and what they share: its caches and
// its metrics.
//
// It decides nothing about upgrades, and it never exits the process.
//
// The hub may write works that the work agent applies as itself (execute-as). The works of actions may name another
// executor, for which an administrator grants the right. The hub reads no Secret.
//
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,resourceNames="system:serviceaccount::klusterlet-work-sa",verbs=execute-as
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=clusterupgraderuns/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersupgrades/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=managed-upgrade-hub-leader,verbs=get;update
package hub
