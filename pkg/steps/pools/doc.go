// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools provides the steps that wait until machine config pools are updated, and the steps
// that delay the update of pools by pausing them before an upgrade commences and unpausing them
// later.
//
// A pool that it pauses has a mark; see clusterstate.PoolMark. The package never unpauses a pool
// that a user paused, never pauses a pool again that a user unpaused, and never drains nodes. It
// does not know the target: the cluster version operator and the machine config operator determine
// the configuration of the nodes.
package pools
