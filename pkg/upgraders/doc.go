// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgraders has the interface ClusterUpgrader and the tables of the ways to upgrade a cluster: their
// steps in order, with gates, keep-alives, and deadlines. To see how an upgrade runs, read its table from top
// to bottom.
//
// The package does not read objects. Steps do.
//
// Stability: upgraders of other projects import it. Within a major version, the types and the names of steps
// stay; a renamed step keeps its former name. Tables gain steps and gates in minor versions.
package upgraders
