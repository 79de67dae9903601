// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeschedule creates the UpgradeJobs of the UpgradeConfigs of managedupgrade.appuio.io:
// one for each scheduled start, which is called a slot. It runs no upgrade: the UpgradeJob does.
//
// A slot is handled in this order: the API server is queried for an UpgradeJob with the label of the slot, one is
// created if there is none, an Event is published, and status.handledUntil and status.lastSlot are written. A crash in
// between repeats what precedes it and finds the UpgradeJob by its label, so a slot never gets two, and is never lost.
// Before an UpgradeJob is created, the UpgradeConfig is compared with the one on the API server, so a cache that is
// behind creates none.
//
// The decision about a slot uses only the cache: the schedule, the time, the UpgradeSuspensionWindows, and the
// ClusterVersion. A pass that changes nothing makes no request.
package upgradeschedule
