// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// run adds extra nodes and removes them again.
func (w *world) run() {
	w.TB.Helper()
	if got := w.settle(w.add); got.Reason() != engine.ReasonDone {
		w.TB.Fatalf("added: %+v", got)
	}
	if diff := cmp.Diff([]string{"+worker-a", "+worker-b", "+worker-c", "worker-a", "worker-b", "worker-c"}, w.names()); diff != "" {
		w.TB.Fatalf("MachineSets (-want +got):\n%s", diff)
	}
	w.settle(w.remove)
	if left := w.remaining(); len(left) > 0 {
		w.TB.Fatalf("left: %v", left)
	}
}

func TestFaultsOfEachRequest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]simulation.Outcome{"refused": simulation.Refuse, "answer lost": simulation.LoseAnswer} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart: %t", name, restarts), func(t *testing.T) {
				t.Parallel()
				for nth := 1; ; nth++ {
					w := newWorld(t, set("worker-a"), set("worker-b"), set("worker-c"))
					hit := false
					w.fault = func(n int) simulation.Outcome {
						if n != nth {
							return simulation.Serve
						}
						hit = true
						if restarts {
							w.restart()
						}
						return f
					}
					w.run()
					switch {
					case hit:
						continue
					case nth < 15:
						t.Fatalf("only %d requests", nth-1)
					}
					return
				}
			})
		}
	}
}

func TestFaultsOfEachRequestOfAnAbortedUpgrade(t *testing.T) {
	t.Parallel()
	for nth := 1; nth < 20; nth++ {
		for _, f := range []simulation.Outcome{simulation.Refuse, simulation.LoseAnswer} {
			w := newWorld(t, set("worker-a"), set("worker-b"), set("worker-c"))
			w.machines.Failures["worker-b"] = openshift.NoNode
			w.fault = func(n int) simulation.Outcome {
				if n == nth || n == nth+1 {
					return f
				}
				return simulation.Serve
			}
			for range nth {
				_, _ = w.call(w.add(), w.Now().Sub(noon))
				w.pass(time.Second)
			}
			if got := w.settle(w.removeWithin); got != engine.Done("no extra node is left") {
				t.Errorf("cleaned up: %+v", got)
			}
			if left := w.remaining(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		}
	}
}

// TestNothingIsLeftBehind randomly combines faults, failures, restarts, and changes.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, set("worker-a"), set("worker-b"), set("infra", role("infra")))
		faults := rapid.SliceOfN(rapid.SampledFrom([]simulation.Outcome{simulation.Serve, simulation.Serve, simulation.Serve, simulation.Refuse, simulation.LoseAnswer}), 60, 60).Draw(r, "faults")
		w.fault = func(n int) simulation.Outcome { return faults[n%len(faults)] }
		for _, what := range rapid.SliceOfN(rapid.IntRange(0, 7), 1, 30).Draw(r, "what") {
			tried := rapid.SampledFrom([]time.Duration{0, time.Minute, timeout, time.Hour}).Draw(r, "tried")
			switch what {
			case 0:
				w.restart()
			case 1, 2:
				_, _ = w.call(w.add(), tried)
			case 3:
				another := testAttempt
				another.Key = "2026-03-02T12:00:00Z"
				_, _ = w.call(w.operator.Add(another, true, timeout), tried)
			case 4:
				_, _ = w.call(w.operator.Remove(), tried)
			case 5:
				w.pass(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(r, "time"))
			case 6:
				w.machines.Failures["worker-a"] = rapid.SampledFrom([]openshift.MachineFailure{openshift.NoFailure, openshift.NoMachine, openshift.NoQuota, openshift.NoNode, openshift.NodeAbsent, openshift.NodeNotReady, openshift.NodeWithoutName}).Draw(r, "ails")
			case 7:
				for _, extra := range w.extras() {
					extra.Spec.Replicas = new(int32(0))
					w.Update(extra)
				}
			}
			if n := len(w.extras()); n > 4 { // two each for two attempts
				r.Fatalf("there are %d extra MachineSets", n)
			}
		}
		w.fault = nil
		w.settle(w.remove)
		if left := w.remaining(); len(left) > 0 {
			r.Fatalf("left: %v", left)
		}
		if diff := cmp.Diff([]string{"infra", "worker-a", "worker-b"}, w.names()); diff != "" {
			r.Fatalf("MachineSets (-want +got):\n%s", diff)
		}
	})
}
