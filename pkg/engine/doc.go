// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine carries out runbooks: ordered tables of idempotent steps. It
// decides which step is tried, records that it began and how it ended, and
// says when to look again. What it promises is listed at Engine.Pass.
//
// It knows no client, no logger, no cluster and no clock but the one it is
// given; of the API it knows the record alone. What a step does is the step's
// business, and where the record is kept is the caller's.
package engine
