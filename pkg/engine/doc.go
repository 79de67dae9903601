// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs runbooks: ordered tables of idempotent steps. It decides which step runs,
// records that it started and how it ended, and returns when to run again. What it guarantees is
// listed at Engine.Pass.
//
// It uses no client and no logger, and the clock that it is given; of the API it knows the record
// only. What a step does is up to the step, and where the record is stored is up to the caller.
//
// Stability: upgraders of other projects import it. Within a major version, fields, functions, and their meaning stay; fields are
// added. A change that breaks a table is announced in the release notes one minor version ahead.
package engine
