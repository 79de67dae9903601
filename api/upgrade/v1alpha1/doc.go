// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains the API group upgrade.managed.openshift.io: an UpgradeConfig defines the target
// version of a cluster, the time of the upgrade, and its runbook. Its status contains the history of the
// steps.
//
// The package contains only types and names. The controllers implement their behavior.
//
// +kubebuilder:object:generate=true
// +groupName=upgrade.managed.openshift.io
package v1alpha1
