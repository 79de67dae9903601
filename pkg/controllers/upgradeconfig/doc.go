// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeconfig runs UpgradeConfigs. It describes them to package lifecycle: what a spec requests, with
// which runbook, and what the record notes of the cluster.
//
// It does not know the steps or the runbooks.
//
// Stability: ConfigSnapshot and Reconciler may change in every version.
package upgradeconfig
