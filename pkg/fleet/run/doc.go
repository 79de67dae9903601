// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run has the table of the steps by which a hub upgrades one managed cluster, and the steps. Each step writes a
// ManifestWork at most, and reads what the agent of the cluster reports about it. No step reads anything but the cache.
//
// What the works contain and what the feedback means is decided by package delivery.
package run
