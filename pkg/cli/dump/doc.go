// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dump reads objects from a must-gather or from the output of "oc get" instead of a cluster.
package dump
