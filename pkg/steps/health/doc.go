// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health provides the step that waits until the cluster is healthy. Package checks defines
// what healthy means.
//
// It does not know the upgrade: neither its target nor whether it has started. The step only passes
// on complete checks; a check that cannot be completed is an error.
package health
