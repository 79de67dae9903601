// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade contains the commands for the objects that upgrade this cluster, UpgradeConfigs and
// UpgradeJobs. They schedule, show, follow, report on, and change upgrades.
package upgrade
