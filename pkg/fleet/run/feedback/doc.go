// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feedback reads what the work agent of a managed cluster reports about a ManifestWork: what is
// applied and available, how the upgrade of the platform stands, and how Jobs ended.
//
// The feedback rules of the works are also here, beside the functions that read their values: package delivery writes
// them into the works.
//
// All functions are pure. Data that is missing, of another type, ambiguous, too long, or of an older generation of the
// work is marked, and never counts as good news. The package has no memory and no clock: the callers decide how long a
// state lasts, and what follows from it.
package feedback
