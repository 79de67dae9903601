// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent simulates the clusters of a fleet and their work agents: one process answers each
// ManifestWork of a hub as the agent of Open Cluster Management v1.2.0 would. It reports Applied,
// Available, and the feedback that the work requests, which it polls; it keeps what a work orphans when
// the work is deleted.
//
// A cluster is its ClusterVersion, its UpgradeConfigs, and its Jobs. Annotations of its ManagedCluster
// script it. The package does not check the permissions of an agent, and it runs no pods.
package agent
