// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of a binary. Each controller declares which objects it
// reads, which of their changes cause a reconcile, and how it is reconciled (Controller). The
// package derives the scheme, the caches, the watches, and the readiness probe from these
// declarations.
//
// It does not know any particular controller, and it never exits the process.
//
// Stability: Kind and Version stay within a major version, because upgraders of other projects use them. All else may change in
// every version.
package manager
