// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health has the step that waits until the cluster is healthy. Package checks decides what
// that means.
//
// It does not know the upgrade: not its target, and not whether it has begun. The step passes only
// on what was determined: a check that cannot be completed is an error.
package health
