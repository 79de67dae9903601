// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

var (
	noon    = time.Date(2020, 6, 20, 12, 0, 0, 0, time.UTC)
	errDown = errors.New("no answer")

	upgradeConfig = schema.GroupKind{Group: "upgrade.managed.openshift.io", Kind: "UpgradeConfig"}
)

func newMetrics(t *testing.T) (*metrics.Upgrades, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.NewUpgrades(registry)
	if err != nil {
		t.Fatal(err)
	}
	return m, registry
}

func gather(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns the gauges and counters as Prometheus shows them, but only with the values of the
// labels.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	var all []string
	for _, family := range gather(t, registry) {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			value := fmt.Sprint(metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount()))
			all = append(all, strings.TrimPrefix(family.GetName(), "managed_upgrade_")+"{"+strings.Join(labels, ",")+"} "+value)
		}
	}
	slices.Sort(all)
	return all
}

// snapshotOf returns a snapshot of an upgrade in a phase and a step. If step is empty, there is no
// current step.
func snapshotOf(name string, phase history.Phase, step string) metrics.Snapshot {
	l := metrics.Snapshot{Kind: upgradeConfig, Namespace: "upgrades", Name: name, At: noon.Add(time.Hour), Record: history.Record{Version: "4.4.6", Phase: phase}}
	if step != "" {
		l.Record.Conditions = []history.StepCondition{finishedStep(metav1.ConditionTrue, engine.ReasonDone, 0), {Type: step, StartTime: new(metav1.NewTime(noon))}}
	}
	return l
}

// withError returns the snapshot of a failed reconcile.
func withError(l metrics.Snapshot) metrics.Snapshot {
	l.Err = errDown
	return l
}

// atMinute changes the time of a snapshot to the given number of minutes after noon.
func atMinute(minutes int, l metrics.Snapshot) metrics.Snapshot {
	l.At = afternoon(minutes)
	return l
}

// afternoon returns a time in minutes after noon.
func afternoon(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

func finishedStep(status metav1.ConditionStatus, reason string, after time.Duration) history.StepCondition {
	return history.StepCondition{
		Type: "PreHealthCheck", Status: status, Reason: reason,
		StartTime: new(metav1.NewTime(noon)), CompleteTime: new(metav1.NewTime(noon.Add(after))),
	}
}

func TestMetrics_pass_promlint(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	l := snapshotOf("example", history.PhaseUpgrading, "PreHealthCheck")
	l.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Valid", LastTransitionTime: metav1.NewTime(noon)}}
	l.StartAfter, l.StartBefore = noon, noon.Add(time.Hour)
	m.SetUpgrade(l)
	m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionTrue, engine.ReasonDone, time.Minute))
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, "WindowMissed", 0)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, engine.ReasonCancelled, time.Hour)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseUpgraded, "", time.Hour)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseSkipped, "Expired", time.Hour)
	m.ObserveHealthCheck("nodes", false, noon)
	families := gather(t, registry)
	if len(families) != 17 {
		t.Errorf("got %d metrics, want each of the 17 to have a value", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if _, err := metrics.NewUpgrades(registry); err == nil {
		t.Error("the same metrics could be registered twice")
	}
}

// upgradeSeries returns the series of each upgrade: either only those with the time of the last
// reconcile or all others.
func upgradeSeries(t *testing.T, registry *prometheus.Registry, lastSync bool) []string {
	t.Helper()
	return slices.DeleteFunc(series(t, registry), func(s string) bool {
		return !strings.Contains(s, "namespace=") || strings.HasPrefix(s, "held{") || strings.HasPrefix(s, "last_sync") != lastSync
	})
}

func TestGauges_show_the_latest_snapshot_only(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	check := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, upgradeSeries(t, registry, false), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
	}
	pending := snapshotOf("example", history.PhasePending, "")
	pending.Conditions = []metav1.Condition{
		{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Downgrade", LastTransitionTime: metav1.NewTime(noon)},
		{Type: "Progressing", Status: metav1.ConditionFalse, Reason: "Downgrade", LastTransitionTime: metav1.NewTime(noon.Add(time.Minute))},
	}
	m.SetUpgrade(pending)
	check("condition_timestamp_seconds{condition=Accepted,kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,reason=Downgrade,status=False,version=4.4.6} 1.5926544e+09",
		"condition_timestamp_seconds{condition=Progressing,kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,reason=Downgrade,status=False,version=4.4.6} 1.59265446e+09",
		"phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=Pending,version=4.4.6} 1")

	m.SetUpgrade(snapshotOf("example", history.PhaseUpgrading, "VersionPinned"))
	upgrading := []string{
		"phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=Upgrading,version=4.4.6} 1",
		"step_slow{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,step=VersionPinned,version=4.4.6} 0",
		"step_timestamp_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,step=VersionPinned,version=4.4.6} 1.5926544e+09",
	}
	check(upgrading...)
	m.SetUpgrade(snapshotOf("example", history.PhaseUpgrading, "VersionPinned"))
	check(upgrading...)

	late := snapshotOf("example", history.PhaseUnknown, "CommenceUpgrade")
	late.Slow = true
	m.SetUpgrade(late)
	check("phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=Unknown,version=4.4.6} 1",
		"step_slow{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,step=CommenceUpgrade,version=4.4.6} 1",
		"step_timestamp_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,step=CommenceUpgrade,version=4.4.6} 1.5926544e+09")

	another := "phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=other,namespace=upgrades,phase=Pending,version=4.4.6} 1"
	m.SetUpgrade(snapshotOf("other", history.PhasePending, ""))
	m.SetUpgrade(snapshotOf("example", history.PhaseUpgraded, ""))
	check("phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=Upgraded,version=4.4.6} 1", another)

	next := snapshotOf("example", history.PhaseNew, "")
	next.Record.Version = "4.4.7"
	m.SetUpgrade(next)
	check("phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=New,version=4.4.7} 1", another)

	m.DeleteUpgrade(upgradeConfig, "upgrades", "example")
	check(another)
	m.DeleteUpgrade(upgradeConfig, "upgrades", "example")
	m.DeleteUpgrade(upgradeConfig, "nowhere", "other")
	check(another)
	m.SetUpgrade(next)
	check("phase{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades,phase=New,version=4.4.7} 1", another)
}

func TestLastSync_is_the_last_successful_reconcile(t *testing.T) {
	t.Parallel()
	over := snapshotOf("example", history.PhaseFailed, "")
	over.Record.CompleteTime = new(metav1.NewTime(noon))
	waiting := snapshotOf("example", history.PhaseUpgrading, "PreHealthCheck")
	for name, tc := range map[string]struct {
		looks []metrics.Snapshot
		want  int // in minutes after noon; 0 if there is no series
	}{
		"one ended well":                  {[]metrics.Snapshot{atMinute(1, waiting)}, 1},
		"two ended well":                  {[]metrics.Snapshot{atMinute(1, waiting), atMinute(5, waiting)}, 5},
		"the last one failed":             {[]metrics.Snapshot{atMinute(1, waiting), atMinute(5, withError(waiting))}, 1},
		"all have failed":                 {[]metrics.Snapshot{atMinute(1, withError(waiting)), atMinute(5, withError(waiting))}, 1},
		"it was well after it had failed": {[]metrics.Snapshot{atMinute(1, withError(waiting)), atMinute(5, waiting)}, 5},
		"finished":                        {[]metrics.Snapshot{atMinute(1, waiting), atMinute(5, over)}, 0},
		"not released":                    {[]metrics.Snapshot{atMinute(1, waiting), atMinute(5, withError(over))}, 0},
		"it begins again after it failed": {[]metrics.Snapshot{atMinute(1, over), atMinute(5, waiting)}, 5},
		"another upgrade reconciled":      {[]metrics.Snapshot{atMinute(1, waiting), atMinute(5, snapshotOf("other", history.PhasePending, ""))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, registry := newMetrics(t)
			for _, l := range tc.looks {
				m.SetUpgrade(l)
			}
			m.DeleteUpgrade(upgradeConfig, "upgrades", "other")
			var want []string
			if tc.want > 0 {
				want = append(want, fmt.Sprintf("last_sync_timestamp_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,name=example,namespace=upgrades} %v", float64(afternoon(tc.want).Unix())))
			}
			if diff := cmp.Diff(want, upgradeSeries(t, registry, true), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			m.DeleteUpgrade(upgradeConfig, "upgrades", "example")
			if left := upgradeSeries(t, registry, true); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestHealthCheck_failures_are_counted_once(t *testing.T) {
	t.Parallel()
	type ask struct {
		minutes int
		ok      bool
	}
	for name, tc := range map[string]struct {
		asked []ask
		want  float64
	}{
		"it is fine":                             {[]ask{{0, true}, {1, true}}, 0},
		"it fails at first":                      {[]ask{{0, false}}, 1},
		"still failing":                          {[]ask{{0, false}, {5, false}, {10, false}, {15, false}}, 1},
		"it fails after it was fine":             {[]ask{{0, true}, {5, false}, {6, false}}, 1},
		"it fails, is fine and fails":            {[]ask{{0, false}, {1, true}, {2, false}}, 2},
		"it failed in an upgrade of another day": {[]ask{{0, false}, {24 * 60, false}}, 2},
		"the clock is put back":                  {[]ask{{0, false}, {-60, false}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, registry := newMetrics(t)
			m.ObserveHealthCheck("pools", true, noon)
			for _, a := range tc.asked {
				m.ObserveHealthCheck("nodes", a.ok, afternoon(a.minutes))
			}
			var want []string
			if tc.want > 0 {
				want = append(want, fmt.Sprintf("health_check_failures_total{check=nodes} %v", tc.want))
			}
			got := slices.DeleteFunc(series(t, registry), func(s string) bool { return !strings.HasPrefix(s, "health") })
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("counted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigValid_defaults_to_valid(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	for _, want := range []string{"configuration_valid{} 1", "configuration_valid{} 0", "configuration_valid{} 1"} {
		if got := series(t, registry); !slices.Contains(got, want) {
			t.Errorf("got %v, want %s", got, want)
		}
		m.SetConfigValid(strings.HasSuffix(want, "0"))
	}
}

func TestStep_durations_by_result(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionTrue, engine.ReasonDone, time.Minute))
	m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionTrue, engine.ReasonDone, time.Hour))
	m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionTrue, "NotAsked", 0))
	m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionFalse, "TooLate", time.Hour))
	waiting := finishedStep(metav1.ConditionFalse, "NotYet", 0)
	waiting.CompleteTime = nil
	m.ObserveStep(upgradeConfig, "OSD", waiting)
	passedOver := finishedStep(metav1.ConditionTrue, "AddedLater", 0)
	passedOver.StartTime = nil
	m.ObserveStep(upgradeConfig, "OSD", passedOver)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, "WindowMissed", 0)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, "WindowMissed", 0)
	want := []string{
		"configuration_valid{} 1",
		"failures_total{kind=UpgradeConfig.upgrade.managed.openshift.io,reason=WindowMissed,type=OSD} 2",
		"notification_failures_total{channel=events} 0",
		"step_duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=done,step=PreHealthCheck,type=OSD} 2",
		"step_duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=failed,step=PreHealthCheck,type=OSD} 1",
		"step_duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=skipped,step=PreHealthCheck,type=OSD} 1",
	}
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

func TestBuckets_cover_a_minute_to_half_a_day(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	for _, took := range []time.Duration{time.Minute, 3 * time.Hour, 49 * time.Hour} {
		m.ObserveStep(upgradeConfig, "OSD", finishedStep(metav1.ConditionTrue, engine.ReasonDone, took))
	}
	families := gather(t, registry)
	of := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "managed_upgrade_step_duration_seconds" })
	histogram := families[of].GetMetric()[0].GetHistogram()
	counts := map[float64]uint64{}
	var bounds []float64
	for _, bucket := range histogram.GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
		counts[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
	}
	first, last := time.Minute.Seconds(), (48 * time.Hour).Seconds()
	if !slices.IsSorted(bounds) || bounds[0] != first || bounds[len(bounds)-1] != last {
		t.Errorf("the buckets end at %v", bounds)
	}
	if counts[first] != 1 || counts[(3*time.Hour).Seconds()] != 2 || counts[last] != 2 || histogram.GetSampleCount() != 3 {
		t.Errorf("a minute, three hours, and 49 hours are counted as %v of %d", counts, histogram.GetSampleCount())
	}
	if want := (52*time.Hour + time.Minute).Seconds(); histogram.GetSampleSum() != want {
		t.Errorf("they add up to %v s, want %v", histogram.GetSampleSum(), want)
	}
}

func TestEndOfUpgrades(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseUpgraded, "", 3*time.Hour)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseUpgraded, "", 0) // there was nothing to do
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, "WindowMissed", 30*time.Minute)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseFailed, engine.ReasonCancelled, time.Minute)
	m.ObserveEnd(upgradeConfig, "OSD", history.PhaseSkipped, "Expired", time.Minute)
	got := slices.DeleteFunc(series(t, registry), func(s string) bool { return !strings.Contains(s, "kind=") })
	want := []string{
		"cancellations_total{kind=UpgradeConfig.upgrade.managed.openshift.io,type=OSD} 1",
		"duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=cancelled,type=OSD} 1",
		"duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=failed,type=OSD} 1",
		"duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=skipped,type=OSD} 1",
		"duration_seconds{kind=UpgradeConfig.upgrade.managed.openshift.io,result=succeeded,type=OSD} 1",
		"failures_total{kind=UpgradeConfig.upgrade.managed.openshift.io,reason=WindowMissed,type=OSD} 1",
		"skipped_total{kind=UpgradeConfig.upgrade.managed.openshift.io,reason=Expired,type=OSD} 1",
		"successes_total{kind=UpgradeConfig.upgrade.managed.openshift.io,type=OSD} 2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestKindsOfOneNameHaveTheirOwnSeries(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	one, other := snapshotOf("example", history.PhaseUpgrading, "Hooks"), snapshotOf("example", history.PhasePending, "")
	other.Kind = schema.GroupKind{Group: "managedupgrade.appuio.io", Kind: "UpgradeConfig"}
	m.SetUpgrade(one)
	m.SetUpgrade(other)
	m.DeleteUpgrade(upgradeConfig, "upgrades", "example")
	got := slices.DeleteFunc(series(t, registry), func(s string) bool { return !strings.Contains(s, "phase{") })
	want := []string{"phase{kind=UpgradeConfig.managedupgrade.appuio.io,name=example,namespace=upgrades,phase=Pending,version=4.4.6} 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series after the other was deleted (-want +got):\n%s", diff)
	}
}

func TestLabelsOfADamagedStatus(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	s := snapshotOf("example", history.PhaseUpgrading, "a\x1b[31m\nb"+strings.Repeat("x", 1<<20))
	s.Record.Version = "4.4.6\x00\xff"
	s.Conditions = []metav1.Condition{
		{Type: "A\n", Status: "True", Reason: strings.Repeat("R", 1<<20)},
		{Type: "A\t", Status: "True", Reason: strings.Repeat("R", 1<<19)},
	}
	m.SetUpgrade(s)
	for _, line := range series(t, registry) {
		if len(line) > 1000 || strings.ContainsAny(line, "\x1b\n\x00\t") {
			t.Errorf("series %q", line[:min(len(line), 300)])
		}
	}
}

func TestBuildInfo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	if err := metrics.RegisterBuildInfo(registry, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	if got := series(t, registry); len(got) != 1 || !strings.HasPrefix(got[0], "build_info{goversion=go") || !strings.HasSuffix(got[0], ",version=v1.2.3} 1") {
		t.Errorf("series: %v", got)
	}
}
