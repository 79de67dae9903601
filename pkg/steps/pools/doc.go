// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools has the step that waits for the nodes: for all machine config
// pools to be updated.
//
// It only looks. It unpauses no pool, drains no node and knows no target: what
// the nodes are to become is between the cluster version operator and the
// machine config operator.
package pools
