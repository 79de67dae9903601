// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the API group managedupgrade.appuio.io, which upgrades a cluster in maintenance
// windows: an UpgradeConfig defines the windows, an UpgradeJob is one upgrade, an UpgradeJobHook runs a Job
// on events of upgrades, an UpgradeSuspensionWindow suspends upgrades for a period, and a ClusterVersion
// defines fields of OpenShift's ClusterVersion.
//
// The package contains only types and names. Package maintenance converts their values, and the controllers
// implement their behavior.
//
// +kubebuilder:object:generate=true
// +groupName=managedupgrade.appuio.io
package v1beta1
