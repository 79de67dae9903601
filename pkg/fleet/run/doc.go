// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run has the steps that upgrade one managed cluster, and their table. Each step writes a
// ManifestWork at most, and reads what the agent of the cluster reports about it. No step reads anything but the cache.
//
// Package delivery decides what the works contain, and what the feedback says.
package run
