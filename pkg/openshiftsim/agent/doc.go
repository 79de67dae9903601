// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent simulates the clusters of a fleet and their work agents: a single process responds
// to all ManifestWorks on a hub like the agent of Open Cluster Management v1.2.0. It reports
// Applied, Available, and the requested feedback, which it polls. When a work is deleted, it keeps
// the objects that the work orphans.
//
// A cluster consists of its ClusterVersion, UpgradeConfigs, and Jobs. Annotations of its
// ManagedCluster script its behavior. The package does not check the permissions of agents and runs
// no pods.
package agent
