// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runbooks holds the tables of the ways to upgrade a cluster: which
// steps there are, in which order, and when people are told or the upgrade is
// given up. To read how an upgrade goes, read its table from top to bottom.
//
// It does not look at objects: whatever does is a step.
package runbooks
