// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs runbooks: ordered tables of idempotent steps. It decides which step runs, records when
// the step started and how it ended, and returns when to run again. Engine.Pass lists its guarantees.
//
// The package uses no client, no logger, and no clock but the given one. Of the API, it knows only the record.
// Steps decide how to do their work, and the caller decides where to store the record.
//
// Stability: upgraders of other projects import this package. Within a major version, fields and functions keep
// their behavior, and fields may be added. A change that breaks tables is announced in the release notes one
// minor version ahead.
package engine
