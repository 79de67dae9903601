// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeconfig runs UpgradeConfigs. It describes them to package lifecycle, which does the
// work: what a spec requests, by which runbook it is carried out, and which facts of the cluster
// decide whether an upgrade can start.
//
// It does not know what the steps do or which runbooks exist.
//
// Stability: Snapshot and Reconciler may
// change in every version.
package upgradeconfig
