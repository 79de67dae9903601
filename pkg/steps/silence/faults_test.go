// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

type ctx = context.Context

// run opens a window, keeps it alive every five minutes for an hour, and closes it.
func (w *world) run() {
	w.t.Helper()
	w.settle(func() engine.UpgradeStep { return w.window(named).Open() })
	for range 12 {
		w.pass(5 * time.Minute)
		_, err := w.keepAlive(named)
		alive := w.active()
		if err == nil && len(alive) != 2 {
			w.t.Fatalf("at %s %d silences are active: %+v", w.clock.Now(), len(alive), alive)
		}
		for _, s := range alive {
			if left := s.EndsAt.Sub(w.clock.Now()); left > settings.Lease || left < 9*time.Minute || err == nil && left < 15*time.Minute {
				w.t.Fatalf("at %s: %+v", w.clock.Now(), s)
			}
		}
	}
	w.settle(func() engine.UpgradeStep { return w.window(named).Close() })
	w.mustBeActive(0)
}

func TestFaults_of_each_request(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]simulation.HTTPFault{
		"lost request": simulation.HTTPLoseRequest, "lost answer": simulation.HTTPLoseAnswer,
		"replaced answer": simulation.HTTPReplaceAnswer, "refused request": simulation.HTTPRefuse,
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, operator restarts: %t", name, dies), func(t *testing.T) {
				t.Parallel()
				for nth := 1; ; nth++ {
					w := newWorld(t)
					var hit atomic.Bool
					w.server.SetPlan(func(n int) simulation.HTTPFault {
						if n != nth {
							return simulation.HTTPServe
						}
						hit.Store(true)
						if dies {
							w.restart()
						}
						return f
					})
					w.run()
					w.close()
					switch {
					case hit.Load():
						continue
					case nth < 15:
						t.Fatalf("there were %d requests only", nth-1)
					}
					return
				}
			})
		}
	}
}

func TestFaults_of_two_requests_in_a_row(t *testing.T) {
	t.Parallel()
	for nth := 1; nth < 20; nth++ {
		w := newWorld(t)
		w.server.SetPlan(func(n int) simulation.HTTPFault {
			switch n {
			case nth:
				return simulation.HTTPLoseAnswer
			case nth + 1:
				return simulation.HTTPLoseRequest
			}
			return simulation.HTTPServe
		})
		w.run()
		w.close()
	}
}

// Requests fail at random.
func TestFaults_leave_no_silence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		defer w.close()
		fault := rapid.SampledFrom([]simulation.HTTPFault{
			simulation.HTTPServe, simulation.HTTPServe, simulation.HTTPServe, simulation.HTTPLoseRequest,
			simulation.HTTPLoseAnswer, simulation.HTTPReplaceAnswer, simulation.HTTPRefuse,
		})
		faults := rapid.SliceOfN(fault, 60, 60).Draw(r, "faults")
		w.server.SetPlan(func(n int) simulation.HTTPFault { return faults[n%len(faults)] })
		for _, what := range rapid.SliceOfN(rapid.IntRange(0, 6), 1, 40).Draw(r, "what") {
			switch what {
			case 0:
				w.restart()
			case 1:
				w.call(w.window(wide).Open(), 0)
			case 2:
				_, _ = w.keepAlive(named)
			case 3:
				_, _ = w.keepAlive(wide)
			case 4:
				w.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 14 * time.Minute, time.Hour}).Draw(r, "time"))
			case 5:
				w.call(w.window(silence.Scope{}).Close(), 0)
			case 6:
				w.call(w.operator.Load().CloseAll(testAttempt, settings), 0)
			}
			for _, s := range w.active() {
				if s.EndsAt.After(w.clock.Now().Add(settings.Lease)) {
					r.Fatalf("a silence lasts until %s: %+v", s.EndsAt, s)
				}
			}
		}
		w.server.SetPlan(nil)
		w.pass(time.Minute)
		if _, err := w.keepAlive(named); err != nil {
			r.Fatalf("kept: %v", err)
		}
		if n := len(w.active()); n < 1 || n > 4 { // until half of the lease is over, the throttle may keep the result for the other scope
			r.Fatalf("%d silences are active", n)
		}
		w.pass(15 * time.Minute)
		_, _ = w.keepAlive(named)
		w.mustBeActive(2)
		w.call(w.window(named).Close(), 0)
		w.mustBeActive(0)
	})
}
