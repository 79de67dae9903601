// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

func TestUpdateStatus(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := metrics.NewUpdateStatus(registry)
	if err != nil {
		t.Fatal(err)
	}
	of := func(level updatev1beta1.Level, reason string) updatev1beta1.Insight {
		return updatev1beta1.Insight{Impact: updatev1beta1.InsightImpact{Level: level, Reason: reason}}
	}
	status := updatev1beta1.UpdateStatusStatus{
		Assessment: &updatev1beta1.Assessment{State: updatev1beta1.StateStuck, ActionRequired: true},
		ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{UpdateInformers: []updatev1beta1.InformerInsights{
			{Name: updatev1beta1.StatusControllerInformer, Insights: []updatev1beta1.Insight{of(updatev1beta1.LevelInfo, updatev1beta1.ReasonTruncated)}},
			{Name: "shop", Insights: []updatev1beta1.Insight{of(updatev1beta1.LevelError, "Down")}},
		}}},
		WorkerPools: []updatev1beta1.WorkerPoolStatus{{Section: updatev1beta1.Section{UpdateInformers: []updatev1beta1.InformerInsights{
			{Name: "shop", Insights: []updatev1beta1.Insight{of(updatev1beta1.LevelError, updatev1beta1.ReasonTruncated)}},
		}}}},
	}
	m.SetStatus(updatev1beta1.UpdateStatusStatus{Assessment: &updatev1beta1.Assessment{State: updatev1beta1.StateProgressing}})
	m.SetStatus(status)
	m.SetStatusTime(time.Unix(60, 0))
	m.ObserveStatusWrite(100)
	m.ObserveStatusWrite(20)
	m.SetInformerReachable("shop", false)
	m.SetInformerReachable("gone", true)
	m.ObserveInformerRequest("shop", "status", "Wait")
	m.ObserveInformerRequest("gone", "status", "Success")
	m.DeleteInformer("gone")
	want := `
# HELP managed_upgrade_informer_reachable 1 if the update informer responds, 0 otherwise. Absent for disabled informers.
# TYPE managed_upgrade_informer_reachable gauge
managed_upgrade_informer_reachable{informer="shop"} 0
# HELP managed_upgrade_informer_requests_total Number of requests to an update informer, by handler (discovery, status, plan) and outcome: Success, Failure, Wait, Invalid, Rejected, or Unreachable.
# TYPE managed_upgrade_informer_requests_total counter
managed_upgrade_informer_requests_total{handler="status",informer="shop",outcome="Wait"} 1
# HELP managed_upgrade_status_action_required 1 if manual action is required for the update to continue, 0 otherwise.
# TYPE managed_upgrade_status_action_required gauge
managed_upgrade_status_action_required 1
# HELP managed_upgrade_status_insights Number of insights in the UpdateStatus, by level.
# TYPE managed_upgrade_status_insights gauge
managed_upgrade_status_insights{level="critical"} 0
managed_upgrade_status_insights{level="error"} 2
managed_upgrade_status_insights{level="info"} 1
managed_upgrade_status_insights{level="status"} 0
managed_upgrade_status_insights{level="warning"} 0
# HELP managed_upgrade_status_last_pass_timestamp_seconds Time at which the published status was last current.
# TYPE managed_upgrade_status_last_pass_timestamp_seconds gauge
managed_upgrade_status_last_pass_timestamp_seconds 60
# HELP managed_upgrade_status_state 1 for the state of the update: Idle, Progressing, Waiting, Stuck, or Unknown.
# TYPE managed_upgrade_status_state gauge
managed_upgrade_status_state{state="Stuck"} 1
# HELP managed_upgrade_status_truncated 1 if the UpdateStatus is incomplete because of its limits, 0 otherwise.
# TYPE managed_upgrade_status_truncated gauge
managed_upgrade_status_truncated 1
# HELP managed_upgrade_status_writes_total Number of writes of the UpdateStatus.
# TYPE managed_upgrade_status_writes_total counter
managed_upgrade_status_writes_total 2
# HELP managed_upgrade_status_written_bytes_total Number of bytes sent to write the UpdateStatus.
# TYPE managed_upgrade_status_written_bytes_total counter
managed_upgrade_status_written_bytes_total 120
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// Each call replaces all series, so the series of deleted plans disappear.
func TestUpdateStatus_of_plans(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := metrics.NewUpdateStatus(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.SetPlans([]metrics.PlanSnapshot{{Release: "4.20.7", Startable: true, Accepted: 5, Analyzed: time.Unix(1, 0)}, {Release: "4.20.8", Startable: true, Analyzed: time.Unix(2, 0)}})
	m.SetPlans([]metrics.PlanSnapshot{{Release: "4.20.8", Accepted: 2, Unaccepted: 1, Analyzed: time.Unix(60, 0)}, {Release: "4.20.9", Startable: true}})
	want := `
# HELP managed_upgrade_plan_insights Number of insights that need acceptance in the UpdatePlan of the release, by whether they have been accepted.
# TYPE managed_upgrade_plan_insights gauge
managed_upgrade_plan_insights{accepted="false",release="4.20.8"} 1
managed_upgrade_plan_insights{accepted="false",release="4.20.9"} 0
managed_upgrade_plan_insights{accepted="true",release="4.20.8"} 2
managed_upgrade_plan_insights{accepted="true",release="4.20.9"} 0
# HELP managed_upgrade_plan_last_analysis_timestamp_seconds Time at which the last analysis of the update to the release was completed. Absent if there was no analysis.
# TYPE managed_upgrade_plan_last_analysis_timestamp_seconds gauge
managed_upgrade_plan_last_analysis_timestamp_seconds{release="4.20.8"} 60
# HELP managed_upgrade_plan_startable 1 if the UpdatePlan of the release currently allows the update, 0 otherwise. Absent if there is no UpdatePlan.
# TYPE managed_upgrade_plan_startable gauge
managed_upgrade_plan_startable{release="4.20.8"} 0
managed_upgrade_plan_startable{release="4.20.9"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "managed_upgrade_plan_startable", "managed_upgrade_plan_insights", "managed_upgrade_plan_last_analysis_timestamp_seconds"); err != nil {
		t.Error(err)
	}
}
