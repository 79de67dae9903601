// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgraders has the interface ClusterUpgrader, and the tables of the ways to upgrade a cluster: which steps there are, in which
// order, with which gates, keep-alives, and deadlines. To read how an upgrade runs, read its table
// from top to bottom.
//
// It does not read objects: code that does is a step.
//
// Stability: upgraders of other projects import it. Within a major version, the types and the names of steps stay; a renamed step keeps
// its former name. Tables gain steps and gates in minor versions.
package upgraders
