// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade has the commands about objects that upgrade this cluster: UpgradeConfigs and UpgradeJobs. They
// schedule, show, follow, report, and change an upgrade.
package upgrade
