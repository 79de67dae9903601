// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package poolrelease unpauses the machine config pools that an UpgradeJob or an UpgradeConfig left
// paused because it was deleted after its upgrade had commenced, or because its attempt has ended.
// The mark of the pool holds the release window, so the object is not needed. Its hooks do not run.
// The decision is the same as in the steps of an upgrade; see clusterstate.ReleaseOf.
//
// It never unpauses a pool that a user paused or whose release window has ended. It removes the
// mark of a pool that a user unpaused, so the next pause belongs to the user.
package poolrelease
