// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"time"
)

// ReleaseState is the decision whether the operator may unpause a pool.
type ReleaseState string

// States of the release of a pool.
const (
	// ReleaseNotOurs is a pool that is not paused, or that a user paused.
	ReleaseNotOurs ReleaseState = ""
	// ReleaseKept is a pool that stays paused until a user unpauses it.
	ReleaseKept ReleaseState = "Kept"
	// ReleaseLater is a pool whose release window starts at PoolRelease.At.
	ReleaseLater ReleaseState = "Later"
	// ReleaseNow is a pool that may be unpaused because its window is open or it has nothing to update.
	ReleaseNow ReleaseState = "Now"
	// ReleaseMissed is a pool whose window ended at PoolRelease.At. It stays paused.
	ReleaseMissed ReleaseState = "Missed"
)

// PoolRelease is a ReleaseState with the time that it depends on.
type PoolRelease struct {
	State ReleaseState
	// At is when the window starts (ReleaseLater), when it ends (ReleaseNow and ReleaseMissed), or since when
	// the pool has been kept paused (ReleaseKept).
	At time.Time
	// UpToDate is set if the pool has nothing to update. The window does not matter then.
	UpToDate bool
}

// minReleaseWindow is the minimum length of a window, because a release cannot hit an exact moment.
const minReleaseWindow = time.Minute

// ReleaseOf decides whether the operator may unpause a pool now. All code must use it, with or without an
// UpgradeJob. Only the mark counts: a pool without a valid mark is never unpaused. upToDate reports whether the
// update of the pool's machines is complete.
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

// ReleaseEnd returns the time from which the operator leaves a marked pool paused.
func ReleaseEnd(mark PoolMark) time.Time {
	if earliest := mark.ReleaseAfter.Add(minReleaseWindow); mark.ReleaseBefore.Before(earliest) {
		return earliest
	}
	return mark.ReleaseBefore
}
