// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeschedule creates the UpgradeJobs of the UpgradeConfigs of
// managedupgrade.appuio.io: one for each scheduled start, called a slot. It does not run upgrades;
// the UpgradeJobs do.
//
// A slot is handled in this order: query the API server for an UpgradeJob with the label of the
// slot, create one if there is none, publish an Event, and write status.handledUntil and
// status.lastSlot. After a crash, these steps are repeated and find the UpgradeJob by its label, so
// a slot is never lost and never gets two UpgradeJobs. Before an UpgradeJob is created, the cached
// UpgradeConfig is compared with the API server, so a stale cache creates none.
//
// Decisions about a slot only use the cache: the schedule, the time, the UpgradeSuspensionWindows,
// and the ClusterVersion. A pass that changes nothing makes no request.
package upgradeschedule
