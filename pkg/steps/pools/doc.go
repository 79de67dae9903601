// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pools has the step that waits until all machine config pools are updated.
//
// It writes nothing: it unpauses no pool and drains no node. It knows no target: the cluster version
// operator and the machine config operator determine what the nodes are to become.
package pools
