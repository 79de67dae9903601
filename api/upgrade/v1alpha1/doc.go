// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group upgrade.managed.openshift.io: an
// UpgradeConfig says to which version a cluster is upgraded, when, and by
// which runbook; its status is the history of the steps.
//
// It holds types and names only: what the fields do is decided by the controllers.
//
// +kubebuilder:object:generate=true
// +groupName=upgrade.managed.openshift.io
package v1alpha1
