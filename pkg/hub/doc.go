// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is the list of the controllers of the hub of fleets, and what they share: its caches and
// its metrics.
//
// It decides nothing about upgrades, and it never exits the process.
package hub
