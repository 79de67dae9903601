// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet has the commands about upgrades of fleets. They print the status, the clusters, and the plan of an
// upgrade, and create and change it.
//
// Read reads a snapshot of an upgrade from the API server of the hub. The screens are pure functions of a snapshot.
// What would begin is decided by rollout.Decide, with the same plan and members as on the hub.
package fleet
