// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains the API group managedupgrade.appuio.io, which upgrades a cluster in
// maintenance windows: an UpgradeConfig defines the windows, an UpgradeJob is one upgrade, an
// UpgradeJobHook runs a Job on events of upgrades, an UpgradeSuspensionWindow suspends upgrades for
// a time, and a ClusterVersion defines the parameters of the ClusterVersion of OpenShift.
//
// The package contains types and names. Package maintenance converts their values, and controllers
// implement what the fields mean.
//
// +kubebuilder:object:generate=true
// +groupName=managedupgrade.appuio.io
package v1beta1
