// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify publishes the progress of upgrades as Kubernetes Events, and as CloudEvents to a
// webhook. Notifications are derived from the saved record, delivered in order and at least once,
// and have deterministic IDs.
//
// The package makes no decisions about upgrades, and upgrades never wait for a receiver.
package notify
