// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// ReleaseState is whether the operator may unpause a pool.
type ReleaseState string

// The states.
const (
	// ReleaseNotOurs is a pool that is not paused, or that a user paused.
	ReleaseNotOurs ReleaseState = ""
	// ReleaseKept is a pool that only a user unpauses.
	ReleaseKept ReleaseState = "Kept"
	// ReleaseLater is a pool whose release window has not begun. It begins at Release.At.
	ReleaseLater ReleaseState = "Later"
	// ReleaseNow is a pool that may be unpaused: its window is open, or nothing is to be updated.
	ReleaseNow ReleaseState = "Now"
	// ReleaseMissed is a pool whose window has ended, at Release.At. It stays paused.
	ReleaseMissed ReleaseState = "Missed"
)

// Release is whether the operator may unpause a pool.
type Release struct {
	State ReleaseState
	// At is when the window begins or has ended; for ReleaseNow, when it ends.
	At time.Time
	// UpToDate reports that nothing is to be updated, so that the window does not matter.
	UpToDate bool
}

// minReleaseWindow is the shortest window: no release hits a single moment.
const minReleaseWindow = time.Minute

// ReleaseOf decides whether the operator may unpause a pool now. It is the only answer to that
// question, with an UpgradeJob and without one. It trusts the mark alone: a pool without a valid mark
// is never unpaused. upToDate reports that the update of the pool's machines is complete.
func ReleaseOf(pool clusterstate.Pool, upToDate bool, now time.Time) Release {
	if !pool.PausedByMark() {
		return Release{}
	}
	mark := pool.Mark
	end := mark.ReleaseBefore
	if earliest := mark.ReleaseAfter.Add(minReleaseWindow); end.Before(earliest) {
		end = earliest
	}
	switch {
	case mark.Kept():
		return Release{State: ReleaseKept, At: mark.KeptSince}
	case upToDate:
		return Release{State: ReleaseNow, At: end, UpToDate: true}
	case now.Before(mark.ReleaseAfter):
		return Release{State: ReleaseLater, At: mark.ReleaseAfter}
	case now.Before(end):
		return Release{State: ReleaseNow, At: end}
	}
	return Release{State: ReleaseMissed, At: end}
}
