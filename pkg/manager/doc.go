// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the controllers of a binary. Each Controller declares which objects it
// reads, which changes trigger a reconcile, and how to reconcile. The package derives the scheme,
// the caches, the watches, and the readiness probe from these declarations.
//
// It does not know any specific controller, and it never exits the process.
//
// Stability: Kind and Version are stable within a major version, because upgraders of other
// projects use them. Everything else may change in any version.
package manager
