// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// end holds what a run leaves behind.
type end struct {
	State   fleetv1alpha1.ClusterUpgradeState
	Reason  string
	Form    string
	Desired string
	History []string
	Jobs    []string
	Written map[string]int
}

// faultScenarios are runs for tests where each write of the hub fails once, in each way.
var faultScenarios = map[string]func(testing.TB, simulation.FaultPlan) *world{
	"complete": func(tb testing.TB, plan simulation.FaultPlan) *world {
		tb.Helper()
		return completes(newWorld(tb, actions, operators), plan)
	},
	"complete, with actions by replica sets": func(tb testing.TB, plan simulation.FaultPlan) *world {
		tb.Helper()
		return completes(newWorld(tb, actions, operators, byReplicaSets), plan)
	},
	"refused": func(tb testing.TB, plan simulation.FaultPlan) *world {
		tb.Helper()
		w := newWorld(tb)
		w.Writes = plan
		refuse(w)
		w.admit()
		return w
	},
	"failing": func(tb testing.TB, plan simulation.FaultPlan) *world {
		tb.Helper()
		w := newWorld(tb)
		w.Writes = plan
		w.takes = 0
		failing(20*time.Minute, 0)(w)
		w.admit()
		return w
	},
	"deleted before it is delivered": func(tb testing.TB, plan simulation.FaultPlan) *world {
		tb.Helper()
		w := newWorld(tb)
		w.Writes = plan
		w.holdAgent(upgradeWork)
		w.admit()
		w.After(5*time.Minute, func() { w.Must(w.User.Delete(tb.Context(), w.run())) })
		w.After(6*time.Minute, w.releaseAgent)
		return w
	},
}

func completes(w *world, plan simulation.FaultPlan) *world {
	w.Writes = plan
	w.jobs = map[string]string{"backup": "Complete", "installplan": "Complete", "check": "Complete"}
	w.claim("")
	w.admit(soaks)
	return w
}

// finish lets the run end, and returns what it leaves behind.
func (w *world) finish() end {
	w.TB.Helper()
	w.settle(4 * time.Hour)
	w.RunFor(15 * time.Minute)
	e := end{Form: w.form(), Desired: w.spoke.Desired(), History: w.spoke.History(), Jobs: w.begun, Written: w.seen}
	if run := w.run(); run != nil {
		e.State, e.Reason = run.Status.State, run.Status.Reason
	}
	w.expectReleased()
	return e
}

// TestRun_survives_faults has each write of the hub fail once: the run ends in the same way, and nothing is
// written to the cluster twice.
func TestRun_survives_faults(t *testing.T) {
	t.Parallel()
	for name, start := range faultScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &simulation.WriteLog{}
			want := start(t, log.Plan).finish()
			if len(log.Writes) < 5 {
				t.Fatalf("%d writes", len(log.Writes))
			}
			faults := log.Faults(simulation.CrashBefore, simulation.CrashAfter, simulation.Refuse, simulation.LoseAnswer, simulation.Conflict)
			for _, fault := range faults {
				t.Run(fault.Name, func(t *testing.T) {
					t.Parallel()
					got := start(t, fault.Plan).finish()
					// What proves at the end of a soak that the agent is alive changes nothing on the cluster. It is delivered once
					// more if the process dies that has removed it.
					if probe := delivery.PreflightName(cluster) + " 1/ReadOnly/3"; strings.Contains(fault.Name, "crash") && got.Written[probe] == 2 {
						got.Written[probe]--
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("(-without faults +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// A status that becomes too large for etcd loses the records of earlier attempts.
func TestRun_whose_status_is_too_large(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refuses  int
		attempts []int32
	}{
		"never":             {refuses: 0, attempts: []int32{3, 2, 1}},
		"for three records": {refuses: 1, attempts: []int32{3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			refuse(w)
			w.admit()
			w.settle(4 * time.Hour)
			w.retry()
			w.settle(4 * time.Hour)
			want := w.run().Status.Reason
			refused := 0
			w.Writes = func(r simulation.Request) simulation.Fault {
				if r.Kind != "ClusterUpgradeRun" || r.Subresource != "status" || refused == tc.refuses {
					return simulation.Fault{}
				}
				refused++
				return simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewRequestEntityTooLargeError("limit is 3145728")}
			}
			w.retry()
			w.settle(4 * time.Hour)
			var attempts []int32
			for _, record := range w.run().Status.History {
				attempts = append(attempts, record.Attempt)
			}
			if diff := cmp.Diff(tc.attempts, attempts); diff != "" || refused != tc.refuses || w.run().Status.Attempt != 3 {
				t.Errorf("%d writes are refused; the attempts (-want +got):\n%s\n%s", refused, diff, w.describe())
			}
			w.expect(fleetv1alpha1.StateFailed, want) // as without the refusals
			w.expectReleased()
		})
	}
}

// TestRun_survives_failing_reads has a read of the hub fail once, one in eleven of them.
func TestRun_survives_failing_reads(t *testing.T) {
	t.Parallel()
	for name, start := range faultScenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, nil)
			first := w.reads // before the first pass
			want := w.finish()
			if w.reads < first+50 {
				t.Fatalf("%d reads", w.reads-first)
			}
			var failing []int
			for read := first + 1; read <= w.reads; read += 11 {
				failing = append(failing, read)
			}
			for _, read := range simulation.Sampled(failing) {
				t.Run(strconv.Itoa(read), func(t *testing.T) {
					t.Parallel()
					w := start(t, nil)
					w.failing = read
					if diff := cmp.Diff(want, w.finish()); diff != "" {
						t.Errorf("(-without faults +got):\n%s", diff)
					}
				})
			}
		})
	}
}
