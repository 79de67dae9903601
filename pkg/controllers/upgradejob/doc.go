// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradejob runs UpgradeJobs. It describes them to package lifecycle: the window in which an attempt
// commences, its runbook, and what the status shows apart from the attempt. It answers requests for another
// attempt.
//
// It does not know the steps, or who creates UpgradeJobs.
package upgradejob
