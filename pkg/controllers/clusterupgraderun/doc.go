// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterupgraderun is the controller of ClusterUpgradeRuns: it upgrades one managed cluster by
// the runbook of fleets. It does not decide about the clusters of an upgrade, nor about their turn.
package clusterupgraderun
