// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet prints the upgrades of fleets: their status, their clusters, and their plan.
//
// Read reads a snapshot of an upgrade from the API server of the hub. The screens are pure functions
// of a snapshot. What would begin is decided by rollout.Decide, with the plan and the members that the
// hub uses, too. The commands are in package cli.
package fleet
