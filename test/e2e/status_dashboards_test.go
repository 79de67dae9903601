// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// TestDashboards_of_status_and_fleets runs every expression of these dashboards against a Prometheus with the metrics of six hours.
// In that time, a cluster is updated and two fleets are upgraded. Each expression has results.
func TestDashboards_of_status_and_fleets(t *testing.T) {
	t.Parallel()
	const length, scrape = 6 * time.Hour, 30 * time.Second
	since := time.Now().Add(-length)
	until := since.Add(length - scrape)
	registry := prometheus.NewRegistry()
	script := newMetricsScript(t, registry)
	var samples bytes.Buffer
	for at := since; !at.After(until); at = at.Add(scrape) {
		script.set(at, at.Sub(since))
		families, err := registry.Gather()
		mustSucceed(t, err)
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				metric.TimestampMs = new(at.UnixMilli())
			}
			_, err := expfmt.MetricFamilyToOpenMetrics(&samples, family)
			mustSucceed(t, err)
		}
	}
	_, err := expfmt.FinalizeOpenMetrics(&samples)
	mustSucceed(t, err)
	url := startBackfilled(t, samples.Bytes())
	drawDashboard(t, "status", "an update of a cluster", query(t, "status", url, since, until, time.Minute))
	drawDashboard(t, "fleets", "upgrades of two fleets", query(t, "fleets", url, since, until, time.Minute))
}

// startBackfilled starts a Prometheus with the samples and returns its URL.
func startBackfilled(t *testing.T, samples []byte) string {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	folder := t.TempDir()
	file, config := filepath.Join(folder, "samples"), filepath.Join(folder, "config.yaml")
	mustSucceed(t, os.WriteFile(file, samples, 0o600))
	mustSucceed(t, os.WriteFile(config, []byte("{}"), 0o600))
	data := filepath.Join(folder, "data")
	if printed, err := exec.CommandContext(t.Context(), filepath.Join(bin, "promtool"), "tsdb", "create-blocks-from", "openmetrics", file, data).CombinedOutput(); err != nil {
		t.Fatalf("promtool: %v\n%s", err, printed)
	}
	port, err := controlplane.FreePort()
	mustSucceed(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	process, err := childprocess.Start(childprocess.Command{
		Path: filepath.Join(bin, "prometheus"), Log: filepath.Join(folder, "log"),
		Args: []string{"--config.file=" + config, "--storage.tsdb.path=" + data, "--web.listen-address=" + address},
	})
	mustSucceed(t, err)
	t.Cleanup(func() { mustSucceed(t, process.Stop(10*time.Second)) })
	return "http://" + address
}

// metricsScript sets the metrics of the Update Status Controller and of the hub.
type metricsScript struct {
	status *metrics.UpdateStatus
	fleets *metrics.Fleets
	passed time.Duration
}

func newMetricsScript(t *testing.T, registry *prometheus.Registry) *metricsScript {
	t.Helper()
	status, err := metrics.NewUpdateStatus(registry)
	mustSucceed(t, err)
	fleets, err := metrics.NewFleets(registry)
	mustSucceed(t, err)
	return &metricsScript{status: status, fleets: fleets}
}

// set sets the metrics to their values at a time after the start.
func (s *metricsScript) set(at time.Time, passed time.Duration) {
	s.setStatus(at, passed)
	s.setFleet(at, passed, 0, "stores", 24)
	s.setFleet(at, passed, 90*time.Minute, "depots", 12)
	s.passed = passed
}

// every reports whether a multiple of an interval lies between the last call and this one.
func (s *metricsScript) every(interval, passed time.Duration) bool {
	return passed/interval != s.passed/interval
}

// setStatus lets the update wait for a paused pool in its fourth hour.
func (s *metricsScript) setStatus(at time.Time, passed time.Duration) {
	assessment := updatev1beta1.Assessment{State: updatev1beta1.StateIdle}
	warnings := 1
	switch {
	case passed > 5*time.Hour || passed < time.Hour:
	case passed > 3*time.Hour && passed < 4*time.Hour:
		assessment, warnings = updatev1beta1.Assessment{State: updatev1beta1.StateStuck, ActionRequired: true}, 4
	default:
		assessment, warnings = updatev1beta1.Assessment{State: updatev1beta1.StateProgressing}, 2
	}
	insights := updatev1beta1.InformerInsights{Name: "cluster"}
	add := func(level updatev1beta1.Level, n int) {
		for range n {
			insights.Insights = append(insights.Insights, updatev1beta1.Insight{Impact: updatev1beta1.InsightImpact{Level: level}})
		}
	}
	add(updatev1beta1.LevelInfo, 3)
	add(updatev1beta1.LevelWarning, warnings)
	if assessment.ActionRequired {
		add(updatev1beta1.LevelError, 2)
	}
	s.status.SetStatus(updatev1beta1.UpdateStatusStatus{
		Assessment: &assessment, ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{UpdateInformers: []updatev1beta1.InformerInsights{insights}}},
	})
	s.status.SetStatusTime(at.Add(-10 * time.Second))
	s.status.SetPlans([]metrics.PlanSnapshot{
		{Release: "4.20.7", Startable: passed > 2*time.Hour, Accepted: 2, Unaccepted: int32(max(0, 2-passed/time.Hour)), Analyzed: at.Add(-passed % (15 * time.Minute))},
		{Release: "4.21.2", Accepted: 0, Unaccepted: 4, Analyzed: at.Add(-passed % time.Hour)},
	})
	for informer, interval := range map[string]time.Duration{"storage": time.Minute, "virtualization": 2 * time.Minute} {
		outcome, reachable := "Success", true
		if informer == "storage" && passed > 150*time.Minute && passed < 200*time.Minute {
			outcome, reachable = "Unreachable", false
		}
		if s.every(interval, passed) {
			s.status.ObserveInformerRequest(informer, "status", outcome)
		}
		s.status.SetInformerReachable(informer, reachable)
	}
}

// setFleet lets the clusters of a fleet begin one after the other once its window opens. Two of them fail.
func (s *metricsScript) setFleet(at time.Time, passed, opens time.Duration, name string, clusters int32) {
	const begins, takes = 9 * time.Minute, 70 * time.Minute
	begun := min(clusters, int32(max(0, passed-opens)/begins))
	ended := min(clusters, int32(max(0, passed-opens-takes)/begins))
	failed := min(2, ended/4)
	budget := 3 - int(failed)
	fleet := metrics.Fleet{
		Namespace: "fleet", Name: name, BudgetLeft: &budget, LastPass: at.Add(-passed % (5 * time.Minute)),
		Clusters: map[string]int32{
			"NotStarted": clusters - begun, "Initialized": min(2, begun-ended), "PartialUpgrade": max(0, begun-ended-2), "Complete": ended - failed, "Failed": failed,
		},
		Failures: map[string]int32{},
	}
	if failed > 0 {
		fleet.Failures["ClusterVersionFailing"] = 1
	}
	if failed > 1 {
		fleet.Failures["TimedOut"] = 1
	}
	if begun == 0 {
		fleet.Blocked = fleetv1beta1.ReasonOutsideWindow
	}
	if begun > ended {
		fleet.OldestInFlight = at.Add(-passed + opens + time.Duration(ended+1)*begins)
		fleet.Stalled = failed - 1
		fleet.Blocked = fleetv1beta1.ReasonNoFreeSlot
	}
	fleet.Stalled = max(0, fleet.Stalled)
	s.fleets.SetFleet(fleet)
	if s.every(begins, passed) && ended > 0 {
		for step, length := range map[string]time.Duration{"Delivered": time.Minute, "Accepted": 3 * time.Minute, "Upgraded": 62 * time.Minute} {
			from, to := metav1.NewTime(at.Add(-length)), metav1.NewTime(at)
			s.fleets.ObserveStep(history.StepCondition{Type: step, Status: metav1.ConditionTrue, Reason: "Done", StartTime: &from, CompleteTime: &to})
		}
	}
}
