// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradejob runs UpgradeJobs. It describes them to package lifecycle, which does the work:
// the window in which an attempt commences, the runbook by which it is carried out, and what the
// status shows beside the attempt. It answers requests for another attempt.
//
// It does not know what the steps do, nor who creates UpgradeJobs.
package upgradejob
