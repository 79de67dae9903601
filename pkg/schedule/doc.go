// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule computes when maintenance starts: a cron expression selects minutes of the wall
// clock of a location, and an ISO 8601 week expression selects weeks among them.
//
// The package is pure: it reads no clock and no object, and every function ends for every input. It does not know what
// starts or whether it was started before.
//
// A wall clock does not show every minute exactly once. A minute that daylight saving time skips stands for the end of
// the gap, and a minute that occurs twice stands for its first occurrence. A skipped minute has its own date and week,
// even if the gap ends in others.
package schedule
