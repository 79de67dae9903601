// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission makes the plan and the members of a ManagedClustersUpgrade for rollout.Decide, checks a cluster before
// its upgrade, and computes the status from what was decided: counters, groups, causes, and conditions.
//
// The hub and the CLI use it, so a printed plan matches what the hub would do. The package reads from a cache or from
// the API server, and writes nothing.
package admission
