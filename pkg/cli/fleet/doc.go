// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet contains the commands for fleet upgrades. They print the status, clusters, and plan of an upgrade, and
// create and change upgrades.
//
// Read reads a snapshot of an upgrade from the API server of the hub. The screens are pure functions of a snapshot.
// rollout.Decide decides what would start, with the same plan and members as on the hub.
package fleet
