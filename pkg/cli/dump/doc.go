// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dump reads the objects of a must-gather, or of files that "oc get" printed, in place of a cluster.
package dump
