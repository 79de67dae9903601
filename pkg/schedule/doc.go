// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule computes when maintenance starts. A cron expression selects minutes on the wall
// clock of a location, and an ISO 8601 week expression restricts them to certain weeks.
//
// The package is pure: it reads no clock and no objects, and every function terminates for every
// input. It does not know what is started, or whether it has been started before.
//
// A wall clock does not show every minute exactly once. A minute skipped by daylight saving time
// stands for the end of the gap, and a minute that occurs twice stands for its first occurrence. A
// skipped minute keeps its own date and week, even if the gap ends on another day.
package schedule
