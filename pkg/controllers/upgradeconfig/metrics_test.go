// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// series returns the values of a metric by the values of its labels except for name, namespace, and
// version, in the order of the labels' names.
func (w *world) series(metric string) map[string]float64 {
	w.TB.Helper()
	all := map[string]float64{}
	for _, s := range w.Series() {
		if s.Name != metric {
			continue
		}
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
			if name != "kind" && name != "name" && name != "namespace" && name != "version" {
				labels = append(labels, s.Labels[name])
			}
		}
		all[strings.Join(labels, " ")] = s.Value
	}
	return all
}

// expectSeries compares the series of a metric.
func (w *world) expectSeries(metric string, want map[string]float64) {
	w.TB.Helper()
	if diff := cmp.Diff(want, w.series(metric), cmpopts.EquateEmpty()); diff != "" {
		w.TB.Errorf("after %s: %s (-want +got):\n%s", w.Now().Sub(noon), metric, diff)
	}
}

func seconds(at time.Time) float64 { return float64(at.Unix()) }

func TestMetricsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runTo(-time.Minute)
	w.expectSeries("phase", map[string]float64{"Pending": 1})
	w.expectSeries("step_slow", nil)

	w.runUntilStep("ControlPlaneUpgraded")
	w.RunFor(time.Minute)
	began := find(w.get(upgrade).Status.History, desired, 1, "ControlPlaneUpgraded").StartTime.Time
	w.expectSeries("phase", map[string]float64{"Upgrading": 1})
	w.expectSeries("step_timestamp_seconds", map[string]float64{"ControlPlaneUpgraded": seconds(began)})
	w.expectSeries("step_slow", map[string]float64{"ControlPlaneUpgraded": 0})
	if got, want := w.series("condition_timestamp_seconds")["Progressing ControlPlaneUpgraded True"], seconds(began); got != want {
		t.Errorf("Progressing since %v, want %v", got, want)
	}

	t.Log("the step stays visible while the cluster is unreadable")
	w.failReads(2*maxRequeue + time.Second)
	w.RunFor(2 * maxRequeue)
	w.expectSeries("phase", map[string]float64{"Unknown": 1})
	w.expectSeries("step_timestamp_seconds", map[string]float64{"ControlPlaneUpgraded": seconds(began)})

	w.runToCompletion()
	w.expectSeries("phase", map[string]float64{"Upgraded": 1})
	w.expectSeries("step_slow", nil)
	w.expectSeries("last_sync_timestamp_seconds", nil)

	w.remove(upgrade)
	w.RunFor(time.Minute)
	for _, metric := range []string{"phase", "condition_timestamp_seconds", "step_timestamp_seconds", "step_slow", "last_sync_timestamp_seconds"} {
		w.expectSeries(metric, nil)
	}
}

func TestLastSyncIsKeptWhileReconcilesFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.ControlPlaneDuration = time.Hour
	w.runUntilStep("ControlPlaneUpgraded")
	w.RunFor(maxRequeue)
	before := w.series("last_sync_timestamp_seconds")[""]
	if age := seconds(w.Now()) - before; age > maxRequeue.Seconds() {
		t.Errorf("the last successful reconcile was %v s ago", age)
	}
	w.Writes = func(simulation.Request) simulation.Fault { return simulation.Fault{Outcome: simulation.Refuse} }
	w.RunFor(20 * time.Minute)
	if got := w.series("last_sync_timestamp_seconds")[""]; got > before+maxRequeue.Seconds() {
		t.Errorf("failed reconciles count as successful: %v s after the last one that was", got-before)
	}
	w.Writes = nil
	w.RunFor(2 * maxRequeue)
	if age := seconds(w.Now()) - w.series("last_sync_timestamp_seconds")[""]; age > maxRequeue.Seconds() {
		t.Errorf("the last successful reconcile was %v s ago after the recovery", age)
	}
}

func TestEventFailuresAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runUntilStep("PreHealthCheck")
	w.expectSeries("notification_failures_total", map[string]float64{"events": 0})
	w.Writes = refuse("create Event")
	w.runUntilStep("ControlPlaneUpgraded")
	if got := w.series("notification_failures_total")["events"]; got < 1 {
		t.Errorf("%v failures are counted", got)
	}
}
