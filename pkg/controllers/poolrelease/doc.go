// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poolrelease unpauses the machine config pools that an UpgradeJob or an UpgradeConfig has left paused: one that
// was deleted after its upgrade had commenced, or whose attempt has ended. When that may be is in the mark of
// the pool, so the object is not needed; its hooks do not run. It decides as the steps of an upgrade do,
// see checks.ReleaseOf.
//
// It never unpauses a pool that a user paused, or whose release window has ended. It removes the mark of a pool that a
// user unpaused, so the next pause belongs to the user.
package poolrelease
