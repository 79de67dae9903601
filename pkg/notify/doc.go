// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify publishes what happens to upgrades: as Kubernetes Events, and as CloudEvents to
// a webhook. Notifications are derived from the saved record, in order, at least once, and with
// deterministic IDs.
//
// The package decides nothing about upgrades, and no upgrade waits for a receiver.
package notify
