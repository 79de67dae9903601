// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status computes the status of a ManagedClustersUpgrade from its members: counters, groups, causes, and conditions.
//
// Compute is a pure function. The same members lead to the same bytes, in whatever order they come, so a status is written
// only if something has changed. The package reads and writes no object, and decides about no cluster.
package status
