// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"time"
)

// ReleaseState is whether the operator may unpause a pool.
type ReleaseState string

// The states.
const (
	// ReleaseNotOurs is a pool that is not paused, or that a user paused.
	ReleaseNotOurs ReleaseState = ""
	// ReleaseKept is a pool that only a user unpauses.
	ReleaseKept ReleaseState = "Kept"
	// ReleaseLater is a pool whose release window has not begun. It begins at PoolRelease.At.
	ReleaseLater ReleaseState = "Later"
	// ReleaseNow is a pool that may be unpaused: its window is open, or it has nothing to update.
	ReleaseNow ReleaseState = "Now"
	// ReleaseMissed is a pool whose window has ended, at PoolRelease.At. It stays paused.
	ReleaseMissed ReleaseState = "Missed"
)

// PoolRelease is whether the operator may unpause a pool.
type PoolRelease struct {
	State ReleaseState
	// At is when the window begins or has ended; for ReleaseNow, when it ends.
	At time.Time
	// UpToDate reports that the pool has nothing to update, so the window does not matter.
	UpToDate bool
}

// minReleaseWindow is the shortest window: no release hits a single moment.
const minReleaseWindow = time.Minute

// ReleaseOf decides whether the operator may unpause a pool now. It is the only answer to that
// question, with an UpgradeJob and without one. It trusts the mark alone: a pool without a valid mark
// is never unpaused. upToDate reports that the update of the pool's machines is complete.
func ReleaseOf(pool Pool, upToDate bool, now time.Time) PoolRelease {
	if !pool.PausedByMark() {
		return PoolRelease{}
	}
	mark := pool.Mark
	end := ReleaseEnd(*mark)
	switch {
	case mark.Kept():
		return PoolRelease{State: ReleaseKept, At: mark.KeptSince}
	case upToDate:
		return PoolRelease{State: ReleaseNow, At: end, UpToDate: true}
	case now.Before(mark.ReleaseAfter):
		return PoolRelease{State: ReleaseLater, At: mark.ReleaseAfter}
	case now.Before(end):
		return PoolRelease{State: ReleaseNow, At: end}
	}
	return PoolRelease{State: ReleaseMissed, At: end}
}

// ReleaseEnd returns from when on the operator leaves a pool with a mark paused.
func ReleaseEnd(mark PoolMark) time.Time {
	if earliest := mark.ReleaseAfter.Add(minReleaseWindow); mark.ReleaseBefore.Before(earliest) {
		return earliest
	}
	return mark.ReleaseBefore
}
