// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// events returns the Events about the upgrade as "Type Reason", sorted.
func (w *world) events() []string {
	w.TB.Helper()
	list := simulation.List(w.Harness, &corev1.EventList{})
	var events []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != "ManagedClustersUpgrade" || e.InvolvedObject.UID != w.get().UID || e.Source.Component != component {
			w.TB.Errorf("an Event about %+v of %s", e.InvolvedObject, e.Source.Component)
		}
		events = append(events, e.Type+" "+e.Reason)
	}
	slices.Sort(events)
	return events
}

// retriedRollout fails on its canary and is retried after that.
func retriedRollout(t *testing.T, plan simulation.FaultPlan) *world {
	t.Helper()
	w := newWorld(t, 3, concurrency(3), canary)
	w.makeCanary("c0002")
	w.fails["c0002"] = 1
	w.Writes = plan
	w.RunFor(hours)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt = 2 })
	w.RunFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(hours)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
	w.RunFor(hours)
	return w
}

// retriedEvents are the Events of a retried rollout, in the order of their writes.
var retriedEvents = []string{
	"Normal ManagedClustersSelected", "Normal ManagedClustersUpgradeApplied", "Normal ManagedClustersUpgradeInProgress",
	"Warning CanaryFailed", "Warning CanaryFailed",
	"Normal NoFreeSlot", "Normal ManagedClustersUpgradeInProgress", "Normal Paused",
	"Normal ManagedClustersUpgradeInProgress", "Normal ManagedClustersUpgradeComplete",
}

// The Events of one pass come in the order of the conditions.
func TestEvents_of_one_pass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(time.Minute)
	if diff := cmp.Diff([]string{"Normal ManagedClustersSelected", "Normal Paused"}, w.written); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// The Events of the same rollout come in the same order, each time.
func TestEvents_of_transitions(t *testing.T) {
	t.Parallel()
	for range 3 {
		w := retriedRollout(t, nil)
		w.Process.Kill()
		w.Begin()
		w.RunFor(hours)
		if diff := cmp.Diff(retriedEvents, w.written); diff != "" {
			t.Errorf("Events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(slices.Sorted(slices.Values(retriedEvents)), w.events()); diff != "" {
			t.Errorf("stored Events (-want +got):\n%s", diff)
		}
	}
}

// A crash at any write repeats no Event and loses none.
func TestEvents_once_despite_crashes(t *testing.T) {
	t.Parallel()
	log := &simulation.WriteLog{}
	retriedRollout(t, log.Plan)
	want := slices.Sorted(slices.Values(retriedEvents))
	for _, fault := range log.Faults() {
		if !strings.Contains(fault.Name, "Event") && !strings.Contains(fault.Name, "ManagedClustersUpgrade") {
			continue
		}
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			w := retriedRollout(t, fault.Plan)
			if diff := cmp.Diff(want, w.events()); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

// Events that cannot be written do not stop the rollout.
func TestEvents_that_cannot_be_written(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(2))
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: errors.New("no quota")}.If(func(r simulation.Request) bool {
		return r.Kind == "Event"
	})
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}

func TestMetrics_follow_the_fleet(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	fleets, err := metrics.NewFleets(registry)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 3, concurrency(1), maxFailures(0))
	w.metrics = fleets
	w.Process.Kill()
	w.Begin()
	w.fails["c0000"] = 1
	w.RunFor(10 * time.Minute)
	admitted := w.run("c0000").Spec.AdmissionTime
	want := func(lines string) {
		t.Helper()
		names := []string{
			"fleet_clusters", "fleet_failed_clusters", "fleet_budget_left", "fleet_admission_blocked", "fleet_oldest_in_flight_timestamp_seconds",
		}
		var got []string
		for _, s := range simulation.Gather(t, registry) {
			if slices.Contains(names, s.Name) && s.Value != 0 {
				got = append(got, fmt.Sprintf("%s %.0f", strings.TrimSpace(strings.TrimPrefix(s.Name, "fleet_")+" "+s.Labels["state"]+s.Labels["reason"]), s.Value))
			}
		}
		if diff := cmp.Diff(lines, strings.Join(got, "\n")); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	}
	want(fmt.Sprintf("admission_blocked NoFreeSlot 1\nclusters NotStarted 2\nclusters PartialUpgrade 1\noldest_in_flight_timestamp_seconds %d", admitted.Unix()))
	w.RunFor(hours)
	want("admission_blocked MaxFailuresExceeded 1\nbudget_left -1\nclusters Failed 1\nclusters NotStarted 2\nfailed_clusters ClusterVersionFailing 1")
	if n, err := testutil.GatherAndCount(registry, "managed_upgrade_fleet_step_duration_seconds"); err != nil || n != 2 {
		t.Errorf("%d series of steps, %v", n, err)
	}
	w.Delete(w.get())
	w.RunFor(hours)
	want("")
}

// An upgrade whose first pass already fails is also exported: its alerts depend on it.
func TestMetrics_of_an_upgrade_whose_passes_fail(t *testing.T) {
	t.Parallel()
	for reason, fail := range map[string]func(*world){
		fleetv1beta1.ReasonCannotObserve: func(w *world) { w.unreadable = errors.New("no answer") },
		fleetv1beta1.ReasonSelectionUnstable: func(w *world) {
			w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: forbidden()}.If(func(r simulation.Request) bool {
				return r.Verb == "create" && r.Kind == "Placement"
			})
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			fleets, err := metrics.NewFleets(registry)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, 2, func(u *fleetv1beta1.ManagedClustersUpgrade) {
				u.Spec.Placement, u.Spec.ClusterSelector = nil, &fleetv1beta1.ClusterSelector{}
			})
			w.Process.Kill()
			w.metrics = fleets
			fail(w)
			before := w.reconciles
			w.Begin()
			w.Await(time.Minute, func() bool { return w.reconciles > before })
			first := float64(w.Now().UnixMilli()) / 1000
			w.RunFor(time.Hour)
			want := fmt.Sprintf(`
# HELP managed_upgrade_fleet_admission_blocked 1 for the reason why no cluster of the fleet can start. Absent if clusters can start.
# TYPE managed_upgrade_fleet_admission_blocked gauge
managed_upgrade_fleet_admission_blocked{name="stores",namespace="fleet",reason="%s"} 1
# HELP managed_upgrade_fleet_last_pass_timestamp_seconds Time of the last successful reconcile of an unfinished fleet upgrade, or of its deletion.
# TYPE managed_upgrade_fleet_last_pass_timestamp_seconds gauge
managed_upgrade_fleet_last_pass_timestamp_seconds{name="stores",namespace="fleet"} %g
`, reason, first)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
				"managed_upgrade_fleet_admission_blocked", "managed_upgrade_fleet_last_pass_timestamp_seconds"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A deletion that waits for a run for ever has the time of the deletion, also if the fleet was finished, and
// after a restart. Its alert depends on it.
func TestMetrics_of_a_deletion_that_is_stuck(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	fleets, err := metrics.NewFleets(registry)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 2, concurrency(2))
	w.metrics = fleets
	w.Process.Kill()
	w.Begin()
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	names := []string{"managed_upgrade_fleet_admission_blocked", "managed_upgrade_fleet_last_pass_timestamp_seconds"}
	held := w.run("c0001")
	held.Finalizers, w.cleaning["c0001"] = []string{fleetv1alpha1.Finalizer}, true
	w.Update(held)
	w.Delete(w.get())
	for range 2 {
		w.RunFor(time.Hour)
		want := fmt.Sprintf(`
# HELP managed_upgrade_fleet_admission_blocked 1 for the reason why no cluster of the fleet can start. Absent if clusters can start.
# TYPE managed_upgrade_fleet_admission_blocked gauge
managed_upgrade_fleet_admission_blocked{name="stores",namespace="fleet",reason="Deleting"} 1
# HELP managed_upgrade_fleet_last_pass_timestamp_seconds Time of the last successful reconcile of an unfinished fleet upgrade, or of its deletion.
# TYPE managed_upgrade_fleet_last_pass_timestamp_seconds gauge
managed_upgrade_fleet_last_pass_timestamp_seconds{name="stores",namespace="fleet"} %d
`, w.get().DeletionTimestamp.Unix())
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
		w.Process.Kill()
		w.Begin()
	}
	held = w.run("c0001")
	held.Finalizers = nil
	w.Update(held)
	w.RunFor(time.Minute)
	if n, err := testutil.GatherAndCount(registry, names...); err != nil || n > 0 {
		t.Errorf("%d series of a deleted fleet, %v", n, err)
	}
}
