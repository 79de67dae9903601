// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains an addition to the API group upgrade.managed.openshift.io that exists only on
// the hub of a fleet: a ClusterUpgradeRun is the upgrade of one managed cluster, step by step.
//
// The package contains only types and names. The hub writes these objects, and users read them.
//
// +kubebuilder:object:generate=true
// +groupName=upgrade.managed.openshift.io
package v1alpha1
