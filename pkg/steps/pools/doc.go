// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools has the steps that wait until machine config pools are updated, and those that delay
// the update of pools: they pause a pool before an upgrade commences and unpause it later.
//
// A pool that it pauses carries a mark, see clusterstate.PoolMark. It never unpauses a pool that a user
// paused, never pauses one again that a user unpaused, and drains no node. It knows no target: the
// cluster version operator and the machine config operator determine what the nodes are to become.
package pools
