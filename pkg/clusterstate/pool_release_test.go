// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	begin := time.Date(2027, 3, 2, 22, 0, 0, 0, time.UTC)
	end := begin.Add(time.Hour)
	window := &clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1, ReleaseAfter: begin, ReleaseBefore: end}
	moment := &clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1, ReleaseAfter: begin, ReleaseBefore: begin}
	kept := &clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1, KeptSince: begin}
	for name, tc := range map[string]struct {
		unpaused, upToDate bool
		mark               *clusterstate.PoolMark
		now                time.Time
		want               clusterstate.PoolRelease
	}{
		"paused by a user":                       {now: begin},
		"paused by a user, nothing to update":    {now: begin, upToDate: true},
		"unpaused by a user":                     {now: begin, mark: window, unpaused: true},
		"before the window":                      {now: begin.Add(-time.Nanosecond), mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseLater, At: begin}},
		"at the beginning of the window":         {now: begin, mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseNow, At: end}},
		"before the end of the window":           {now: end.Add(-time.Nanosecond), mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseNow, At: end}},
		"at the end of the window":               {now: end, mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseMissed, At: end}},
		"nothing to update, before the window":   {now: begin.Add(-time.Hour), upToDate: true, mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseNow, At: end, UpToDate: true}},
		"nothing to update, after the window":    {now: end, upToDate: true, mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseNow, At: end, UpToDate: true}},
		"window of no length, after a moment":    {now: begin.Add(time.Second), mark: moment, want: clusterstate.PoolRelease{State: clusterstate.ReleaseNow, At: begin.Add(time.Minute)}},
		"window of no length, after a minute":    {now: begin.Add(time.Minute), mark: moment, want: clusterstate.PoolRelease{State: clusterstate.ReleaseMissed, At: begin.Add(time.Minute)}},
		"paused after a failure":                 {now: end, mark: kept, want: clusterstate.PoolRelease{State: clusterstate.ReleaseKept, At: begin}},
		"paused after a failure, nothing to do":  {now: end, upToDate: true, mark: kept, want: clusterstate.PoolRelease{State: clusterstate.ReleaseKept, At: begin}},
		"clock that was set back before a pause": {now: begin.Add(-24 * time.Hour), mark: window, want: clusterstate.PoolRelease{State: clusterstate.ReleaseLater, At: begin}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := clusterstate.Pool{Name: "night", Paused: !tc.unpaused, Mark: tc.mark}
			if got := clusterstate.ReleaseOf(pool, tc.upToDate, tc.now); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
