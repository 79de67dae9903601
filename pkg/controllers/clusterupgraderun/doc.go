// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterupgraderun is the controller of ClusterUpgradeRuns: it upgrades one managed cluster by
// the runbook of fleets. It decides neither which clusters are upgraded nor when.
package clusterupgraderun
