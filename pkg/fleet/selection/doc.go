// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection determines the members of a ManagedClustersUpgrade: the managed clusters that its Placements and its
// clusterSelector select, with their groups and the canaries among them.
//
// Compute is a pure function over lists, and takes time in proportion to the members. Select reads the Placements and their
// decisions. EnsurePlacement writes the Placement of clusterSelector, and nothing else is written. The package has no
// memory: callers decide how long a cluster must be missing before it is removed, and when a cluster starts.
package selection
