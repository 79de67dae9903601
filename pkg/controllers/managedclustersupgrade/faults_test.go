// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterupgraderuns"}, "x", errors.New("no quota"))
}

// faultyRollout makes a rollout with faults of its writes.
func faultyRollout(t *testing.T, plan simulation.FaultPlan) {
	t.Helper()
	w := newWorld(t, 5, concurrency(2))
	w.Writes = plan
	w.retryRollout(t)
}

// retryRollout upgrades five clusters, retries the one that fails, and checks the end.
func (w *world) retryRollout(t *testing.T) {
	t.Helper()
	w.fails["c0001"] = 1
	w.RunFor(4 * time.Hour)
	w.expect("5/0/0/4/1/0", fleetv1beta1.ReasonFinished)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(4 * time.Hour)
	w.expect("5/0/0/5/0/0", fleetv1beta1.ReasonFinished)
	if len(w.order) != 6 || w.maxFlight > 2 {
		t.Errorf("%d admissions: %v, %d at a time", len(w.order), w.order, w.maxFlight)
	}
}

func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	simulation.EachFault(t, 15, faultyRollout)
}

func TestCacheBehindAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, write := range simulation.Sample(15) {
		t.Run(strconv.Itoa(write), func(t *testing.T) {
			t.Parallel()
			faultyRollout(t, simulation.Fault{Lag: []string{"ManagedClustersUpgrade", "ClusterUpgradeRun"}, LagFor: 20 * time.Minute}.If(func(r simulation.Request) bool { return r.Write == write }))
		})
	}
}

// Each read of the hub fails for a while: the reads of its passes, and the reads that find out what an event concerns.
// Clusters begin, end, and are retried in that time, or the upgrade is deleted.
func TestFleet_survives_failing_reads(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Duration{
		time.Second, 4 * time.Minute, 39 * time.Minute, 44 * time.Minute, 79 * time.Minute, // runs change
		4*time.Hour - time.Second, 8*time.Hour - time.Second, // the retry, the deletion
	} {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 5, concurrency(2))
			w.unread = w.Now().Add(at)
			w.retryRollout(t)
			w.Delete(w.get())
			w.RunFor(time.Hour)
			err := w.User.Get(t.Context(), stores, &fleetv1beta1.ManagedClustersUpgrade{})
			if runs := w.runs(); !apierrors.IsNotFound(err) || len(runs) > 0 {
				t.Errorf("after the deletion there are %d runs, and getting the upgrade: %v", len(runs), err)
			}
			if w.refusals == 0 {
				t.Error("no read failed")
			}
		})
	}
}

// The flight at any time is counted over the runs themselves, while caches are behind and answers
// are lost.
func TestConcurrency_is_never_exceeded(t *testing.T) {
	t.Parallel()
	for seed := range simulation.Sample(8) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 12, concurrency(3))
			n := seed
			w.Writes = func(simulation.Request) simulation.Fault {
				n++
				switch n % 5 {
				case 0:
					return simulation.Fault{Outcome: simulation.LoseAnswer, Lag: []string{"ClusterUpgradeRun"}, LagFor: time.Minute}
				case 2:
					return simulation.Fault{Lag: []string{"ClusterUpgradeRun"}, LagFor: 3 * time.Minute}
				case 3:
					return simulation.Fault{Outcome: simulation.Refuse}
				}
				return simulation.Fault{}
			}
			w.Observe(func(simulation.Change) {
				if flight := w.inFlight(); flight > 3 {
					w.Fail(fmt.Errorf("%d clusters in flight", flight))
				}
			})
			w.RunFor(hours)
			w.expect("12/0/0/12/0/0", fleetv1beta1.ReasonFinished)
		})
	}
}

// The cache does not hold the first run, and a cluster joins that comes before it.
func TestConcurrency_counts_runs_that_the_cache_lacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(1))
	w.Writes = simulation.Fault{Lag: []string{"ClusterUpgradeRun"}, LagFor: 5 * time.Minute}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Key.Namespace == "c0000"
	})
	w.RunFor(10 * time.Second)
	w.addCluster("a0000")
	w.RunFor(20 * time.Minute)
	if diff := cmp.Diff([]string{"c0000"}, w.order); diff != "" {
		t.Errorf("admitted (-want +got):\n%s", diff)
	}
	if n := w.Count("list ClusterUpgradeRunList"); n > 0 {
		t.Errorf("the API server was read %d times", n)
	}
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

// Runs change seven times a second.
func TestStatus_is_written_once_a_second(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20, concurrency(20))
	w.RunFor(10 * time.Second)
	w.published = nil
	for i, run := range w.runs() {
		w.After(time.Duration(i)*150*time.Millisecond, func() { w.setState(&run, fleetv1alpha1.StatePartialUpgrade, "Upgrading") })
	}
	w.RunFor(20 * time.Second)
	w.expect("20/0/20/0/0/0", fleetv1beta1.ReasonFinished)
	for i := range len(w.published) - 1 {
		if gap := w.published[i+1].Sub(w.published[i]); gap < publishInterval {
			t.Errorf("a status after %s", gap)
		}
	}
}

// The request is not served, and the API server does not say so.
func TestAdmission_whose_answer_is_lost_is_repeated_soon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	refused := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Verb == "create" && !refused {
			refused = true
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	w.RunFor(3 * time.Second)
	if len(w.order) != 1 {
		t.Errorf("admitted %v", w.order)
	}
}

func TestQuiet_pass_makes_no_request(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.RunFor(10 * time.Minute) // one cluster is being upgraded
	w.Requests, w.reconciles = nil, 0
	w.RunFor(25 * time.Minute)
	if len(w.Requests) > 0 || w.reconciles < 2 {
		t.Errorf("requests %v in %d passes", w.Requests, w.reconciles)
	}
}

// fleetRollout upgrades a fleet, and checks its end and the rate of its writes.
func fleetRollout(tb testing.TB, clusters, slots int) *world {
	tb.Helper()
	failures := clusters / 50
	w := newWorld(tb, clusters, concurrency(int32(slots)), canary, maxFailures(int32(failures)))
	first := fmt.Sprintf("c%04d", clusters/2)
	w.makeCanary(first)
	for i := range clusters {
		name := fmt.Sprintf("c%04d", i)
		w.slow[name] = i%20 == 7
		if i%50 == 3 {
			w.fails[name] = 1
		}
	}
	w.runUntil(hours, fleetv1beta1.ReasonFinished)
	w.RunFor(5 * time.Hour)
	w.expect(fmt.Sprintf("%d/0/0/%d/%d/0", clusters, clusters-failures, failures), fleetv1beta1.ReasonFinished)
	if int(w.maxFlight) > slots || int(w.maxFlight) < slots-10 {
		tb.Errorf("%d at a time", w.maxFlight)
	}
	if w.order[0] != first {
		tb.Errorf("%s is the first one", w.order[0])
	}
	for i := range len(w.published) - 2 { // the start is recorded beside
		if w.published[i+2].Sub(w.published[i]) < publishInterval {
			tb.Fatalf("statuses at %s and %s", w.published[i], w.published[i+2])
		}
	}
	if n := w.Count("create ClusterUpgradeRun"); n != clusters {
		tb.Errorf("%d runs were created", n)
	}
	return w
}

// At most one status a second, and one write per cluster.
func TestFleet(t *testing.T) {
	t.Parallel()
	w := fleetRollout(t, 200, 60)
	t.Logf("%d passes, %d statuses", w.reconciles, len(w.published))
}

// Limits per cluster: writes and reads, and live heap after the rollout, including the simulation.
const (
	maxRequests  = 1.05
	maxHeapBytes = 25_000
)

// BenchmarkFleet upgrades fleets of increasing size. A quarter of each fleet is upgraded at a time.
func BenchmarkFleet(b *testing.B) {
	for _, clusters := range []int{1000, 2500, 5000, 10_000} {
		b.Run(strconv.Itoa(clusters), func(b *testing.B) {
			each := func(n float64) float64 { return n / float64(clusters) }
			for b.Loop() {
				before := heap()
				w := fleetRollout(b, clusters, clusters/4)
				bytes, requests := each(heap()-before), each(float64(len(w.Requests)))
				b.ReportMetric(float64(w.reconciles), "passes")
				b.ReportMetric(float64(len(w.published)), "statuses")
				b.ReportMetric(requests, "requests/cluster")
				b.ReportMetric(bytes, "B/cluster")
				if requests > maxRequests || bytes > maxHeapBytes {
					b.Errorf("%.3f requests and %.0f B of heap per cluster, limits %v and %d", requests, bytes, maxRequests, maxHeapBytes)
				}
			}
			b.ReportMetric(each(float64(b.Elapsed().Milliseconds())/float64(b.N)), "ms/cluster")
		})
	}
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// intervene has another process write a run right before the hub writes it, once.
func (w *world) intervene() {
	w.Requests = nil
	done := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Verb == "patch" && r.Kind == "ClusterUpgradeRun" && !done {
			done = true
			run := w.run(r.Key.Namespace)
			run.Annotations = map[string]string{"other": "process"}
			w.Must(w.Client("other").Update(w.TB.Context(), run))
		}
		return simulation.Fault{}
	}
}

// Two leaders may act for a while. The attempt of a run is raised only if the run is as the hub has read it.
func TestAttempt_is_raised_of_the_run_that_was_read(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.fails["c0000"] = 1
	w.RunFor(4 * time.Hour)
	w.expect("1/0/0/0/1/0", fleetv1beta1.ReasonFinished)
	w.intervene()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(4 * time.Hour)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
	if n := w.Count("patch ClusterUpgradeRun"); n != 2 {
		t.Errorf("%d requests to raise the attempt, want one that conflicts and one that is served", n)
	}
}

// The cache of a hub that still runs has a run that a user has deleted, and another hub has published that.
func TestStatus_of_another_hub_is_newer_than_the_cache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, concurrency(2))
	w.detachable = true
	w.RunFor(time.Hour) // one is complete
	w.Process.Lag("ClusterUpgradeRun", 10*time.Minute)
	w.Delete(w.run("c0000"))
	w.Begin()
	w.published, w.Requests = nil, nil
	w.RunFor(9 * time.Minute)
	w.expect("3/0/1/1/0/1", fleetv1beta1.ReasonRecordsLost)
	if lists := w.Count("list ClusterUpgradeRunList"); len(w.published) > 2 || lists > 3 {
		t.Errorf("%d statuses, and %d lists", len(w.published), lists)
	}
}

// The caches are filled after a start.
func TestRestart_lists_nothing_again(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, concurrency(2))
	w.RunFor(time.Hour)
	w.Requests = nil
	w.Restart()
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
	if n := w.Count("list ClusterUpgradeRunList"); n > 0 {
		t.Errorf("the runs were listed %d times", n)
	}
}

// The same holds for a withdrawn admission: its upgrade may just have been requested.
func TestAdmission_is_withdrawn_of_the_run_that_was_read(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.UpgradeStrategy.StallTimeout = "10m" })
	w.RunFor(6 * time.Minute)
	run, now := w.run("c0000"), metav1.NewTime(w.Now())
	held := history.StepCondition{Type: fleetv1alpha1.StepPreUpgradeActionAvailable, Status: metav1.ConditionFalse, Reason: engine.ReasonPaused, StartTime: &now}
	run.Status.State, run.Status.Reason = fleetv1alpha1.StateInitialized, engine.ReasonPaused
	run.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{held}}}
	w.UpdateStatus(run)
	w.intervene()
	w.RunFor(11 * time.Minute)
	if n := w.Count("patch ClusterUpgradeRun"); n != 2 || !w.run("c0000").Spec.AdmissionTime.IsZero() {
		t.Errorf("%d requests to withdraw the admission, want one that conflicts and one that is served", n)
	}
}
