// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery builds the ManifestWorks by which the hub upgrades a managed cluster: the upgrade of
// the platform, the preflight, the approval of operators, and the actions before and after.
//
// All functions are pure: the same run and the same ManagedClustersUpgrade lead to the same work. The
// package writes no object and decides nothing about a cluster. Compare returns whether a work must be
// written; a work in flight is never rewritten by another release of the hub.
package delivery
