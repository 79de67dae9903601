// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub wires the controllers of the fleet hub with their shared caches and metrics.
//
// It makes no decisions about upgrades, and it never exits the process.
//
// The hub may write works that the work agent applies with its own identity (execute-as). The works
// of actions may specify another executor if an administrator grants the permission. The hub does
// not read Secrets.
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
