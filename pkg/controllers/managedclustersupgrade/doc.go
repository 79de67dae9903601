// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclustersupgrade admits the clusters of a ManagedClustersUpgrade and publishes its status.
//
// A pass selects the clusters, reads their ClusterUpgradeRuns from the cache, and lets rollout.Decide decide about the clusters that
// begin. A cluster begins when its ClusterUpgradeRun is created or, for a retry, its attempt is raised. Runs that were
// written and that the cache does not hold yet count as begun, so a stale cache never admits too many.
//
// The package upgrades no cluster: the controller of ClusterUpgradeRuns does, and both communicate through the API server
// only.
package managedclustersupgrade
