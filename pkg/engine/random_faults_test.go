// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Random faults in random order: every call is as guaranteed (see world.check), finished steps stay
// finished, a committed upgrade is not aborted because of the window or a cancellation, and the
// upgrade ends once the faults do.
func TestRandom_faults_in_any_order(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(t)
		var next time.Time
		var before history.Record
		pass := func(*rapid.T) { next, _ = c.pass() }
		faults := []saveFault{serveSave, refuseSave, refuseAllSaves, loseAnswer, crashAfter, crashBefore}
		t.Repeat(map[string]func(*rapid.T){
			"pass that is due": func(*rapid.T) {
				if next.After(c.clock.Now()) {
					c.advance(next)
				}
				next, _ = c.pass()
			},
			"an event": pass,
			"save with a fault": func(t *rapid.T) {
				c.store.plan = only(c.store.saves+rapid.IntRange(1, 3).Draw(t, "save"), rapid.SampledFrom(faults).Draw(t, "fault"))
			},
			"a crash in a call": func(t *rapid.T) {
				n := len(c.calls) + rapid.IntRange(1, 3).Draw(t, "call")
				when := rapid.SampledFrom([]moment{beforeActing, afterActing}).Draw(t, "moment")
				c.atCall = func(call int) moment {
					if call == n {
						return when
					}
					return never
				}
			},
			"a restart":     func(*rapid.T) { c.restart() },
			"a lost record": func(*rapid.T) { c.store.lose(); before = history.Record{} },
			"operator down": func(t *rapid.T) { c.pause(time.Duration(rapid.IntRange(1, 200).Draw(t, "minutes")) * time.Minute) },
			"the clock jumps": func(t *rapid.T) {
				c.clock.SetTime(c.clock.Now().Add(-time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second))
			},
			"the health changes": func(t *rapid.T) { c.Unhealthy = rapid.SampledFrom([]string{"", "etcd is degraded"}).Draw(t, "health") },
			"a hold comes or goes": func(t *rapid.T) {
				c.pauseReason = rapid.SampledFrom([]string{"", "paused by an administrator"}).Draw(t, "hold")
			},
			"a cancellation": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "cancels") == 0 {
					c.cancelReason = "the object was deleted"
				}
			},
			"": func(t *rapid.T) {
				record := c.store.load()
				assertFinishedUnchanged(t, before, record)
				summary := engine.Summarize(c.book(), record, c.clock.Now(), c.constraints())
				if f := summary.Failure; f != nil && summary.Committed && (f.Reason == "WindowMissed" || f.Reason == "Cancelled") {
					t.Errorf("committed, and aborted because of %+v", f)
				}
				before = record
			},
		})
		c.Unhealthy, c.pauseReason, c.atCall = "", "", func(int) moment { return never }
		c.store.plan = func(int) saveFault { return serveSave }
		c.restart()
		c.run()
		assertFinishedUnchanged(t, before, c.store.load())
		switch engine.Summarize(c.book(), c.store.load(), c.clock.Now(), c.constraints()).State {
		case engine.Succeeded:
			if c.Workers != target {
				t.Errorf("reported as finished, left: %+v", c.facts)
			}
		case engine.Failed:
			if c.ExtraNode || c.Desired == target && !c.Accepted {
				t.Errorf("reported as cleaned up, left: %+v", c.facts)
			}
		default:
			t.Errorf("not over: %q", lines(c.store.load()))
		}
	})
}
