// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs runbooks: ordered tables of idempotent steps. It decides which step runs,
// records that it started and how it ended, and returns when to run again. What it guarantees is
// listed at Engine.Pass.
//
// It uses no client and no logger, and the clock that it is given; of the API it knows the record
// only. What a step does is up to the step, and where the record is stored is up to the caller.
package engine
