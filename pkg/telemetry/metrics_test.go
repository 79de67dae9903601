// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
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

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/telemetry"
)

func newMetrics(t *testing.T) (*telemetry.Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := telemetry.NewMetrics(registry)
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

// series are the gauges and counters as Prometheus would show them, with the values of their labels alone.
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

func record(phase history.Phase) history.History {
	return history.History{Version: "4.4.6", Phase: phase}
}

func ended(status metav1.ConditionStatus, reason string, after time.Duration) history.StepCondition {
	return history.StepCondition{
		Type: "PreHealthCheck", Status: status, Reason: reason,
		StartTime: new(metav1.NewTime(noon)), CompleteTime: new(metav1.NewTime(noon.Add(after))),
	}
}

func TestTheMetricsAreAsPrometheusLikesThem(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	m.Show("upgrades", "example", record(history.PhaseUpgrading), "PreHealthCheck", true)
	m.Ended("OSD", ended(metav1.ConditionTrue, engine.ReasonDone, time.Minute))
	m.Failed("OSD", "WindowMissed")
	families := gather(t, registry)
	if len(families) != 5 {
		t.Errorf("got %d metrics, want each of the 5 to have a value", len(families))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if _, err := telemetry.NewMetrics(registry); err == nil {
		t.Error("the same metrics could be registered twice")
	}
}

func TestTheGaugesShowWhatTheRecordSaysAndNothingThatItSaidBefore(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	show := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, registry), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
	}
	m.Show("upgrades", "example", record(history.PhasePending), "", false)
	show("phase{name=example,namespace=upgrades,phase=Pending,version=4.4.6} 1")

	m.Show("upgrades", "example", record(history.PhaseUpgrading), "PreHealthCheck", false)
	upgrading := []string{
		"phase{name=example,namespace=upgrades,phase=Upgrading,version=4.4.6} 1",
		"step_slow{name=example,namespace=upgrades,step=PreHealthCheck,version=4.4.6} 0",
		"step{name=example,namespace=upgrades,step=PreHealthCheck,version=4.4.6} 1",
	}
	show(upgrading...)
	m.Show("upgrades", "example", record(history.PhaseUpgrading), "PreHealthCheck", false)
	show(upgrading...)

	m.Show("upgrades", "example", record(history.PhaseUpgrading), "CommenceUpgrade", true)
	show("phase{name=example,namespace=upgrades,phase=Upgrading,version=4.4.6} 1",
		"step_slow{name=example,namespace=upgrades,step=CommenceUpgrade,version=4.4.6} 1",
		"step{name=example,namespace=upgrades,step=CommenceUpgrade,version=4.4.6} 1")

	another := "phase{name=other,namespace=upgrades,phase=Pending,version=4.4.6} 1"
	m.Show("upgrades", "other", record(history.PhasePending), "", false)
	m.Show("upgrades", "example", record(history.PhaseUpgraded), "", false)
	show("phase{name=example,namespace=upgrades,phase=Upgraded,version=4.4.6} 1", another)

	m.Show("upgrades", "example", history.History{Version: "4.4.7", Phase: history.PhaseNew}, "", false)
	show("phase{name=example,namespace=upgrades,phase=New,version=4.4.7} 1", another)

	m.Forget("upgrades", "example")
	show(another)
	m.Forget("upgrades", "example")
	m.Forget("nowhere", "other")
	show(another)
	m.Show("upgrades", "example", history.History{Version: "4.4.7", Phase: history.PhaseNew}, "", false)
	show("phase{name=example,namespace=upgrades,phase=New,version=4.4.7} 1", another)
}

func TestStepsAreMeasuredByHowTheyEnded(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	m.Ended("OSD", ended(metav1.ConditionTrue, engine.ReasonDone, time.Minute))
	m.Ended("OSD", ended(metav1.ConditionTrue, engine.ReasonDone, time.Hour))
	m.Ended("OSD", ended(metav1.ConditionTrue, "NotAsked", 0))
	m.Ended("OSD", ended(metav1.ConditionFalse, "TooLate", time.Hour))
	waiting := ended(metav1.ConditionFalse, "NotYet", 0)
	waiting.CompleteTime = nil
	m.Ended("OSD", waiting)
	passedOver := ended(metav1.ConditionTrue, "AddedLater", 0)
	passedOver.StartTime = nil
	m.Ended("OSD", passedOver)
	m.Failed("OSD", "WindowMissed")
	m.Failed("OSD", "WindowMissed")
	want := []string{
		"failures_total{reason=WindowMissed,type=OSD} 2",
		"step_duration_seconds{result=done,step=PreHealthCheck,type=OSD} 2",
		"step_duration_seconds{result=failed,step=PreHealthCheck,type=OSD} 1",
		"step_duration_seconds{result=skipped,step=PreHealthCheck,type=OSD} 1",
	}
	if diff := cmp.Diff(want, series(t, registry)); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

func TestTheBucketsReachFromAMinuteToHalfADay(t *testing.T) {
	t.Parallel()
	m, registry := newMetrics(t)
	for _, took := range []time.Duration{time.Minute, 3 * time.Hour, 13 * time.Hour} {
		m.Ended("OSD", ended(metav1.ConditionTrue, engine.ReasonDone, took))
	}
	histogram := gather(t, registry)[0].GetMetric()[0].GetHistogram()
	counts := map[float64]uint64{}
	var bounds []float64
	for _, bucket := range histogram.GetBucket() {
		bounds = append(bounds, bucket.GetUpperBound())
		counts[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
	}
	first, last := time.Minute.Seconds(), (12 * time.Hour).Seconds()
	if !slices.IsSorted(bounds) || bounds[0] != first || bounds[len(bounds)-1] != last {
		t.Errorf("the buckets end at %v", bounds)
	}
	if counts[first] != 1 || counts[(3*time.Hour).Seconds()] != 2 || counts[last] != 2 || histogram.GetSampleCount() != 3 {
		t.Errorf("a minute, three hours and thirteen hours are counted as %v of %d", counts, histogram.GetSampleCount())
	}
	if want := (16*time.Hour + time.Minute).Seconds(); histogram.GetSampleSum() != want {
		t.Errorf("they add up to %v s, want %v", histogram.GetSampleSum(), want)
	}
}
