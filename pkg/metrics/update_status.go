// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// UpdateStatus contains the metrics about the UpdateStatus, the UpdatePlans, and the update
// informers. Only the leader of the Update Status Controller has series.
type UpdateStatus struct {
	state          *prometheus.GaugeVec
	actionRequired prometheus.Gauge
	insights       *prometheus.GaugeVec
	truncated      prometheus.Gauge
	lastPass       prometheus.Gauge
	writes         prometheus.Counter
	writtenBytes   prometheus.Counter
	informer       *prometheus.GaugeVec
	requests       *prometheus.CounterVec
	planStartable  *prometheus.GaugeVec
	planInsights   *prometheus.GaugeVec
	planAnalysis   *prometheus.GaugeVec
}

// PlanSnapshot is the state of an UpdatePlan.
type PlanSnapshot struct {
	// Release is the target release.
	Release string
	// Startable reports whether the update may be started now.
	Startable bool
	// Accepted and Unaccepted are the numbers of insights that need acceptance.
	Accepted, Unaccepted int32
	// Analyzed is when the last analysis was completed, or zero.
	Analyzed time.Time
}

// NewUpdateStatus creates and registers the metrics.
func NewUpdateStatus(registry prometheus.Registerer) (*UpdateStatus, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "managed_upgrade_status_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "managed_upgrade_status_" + name, Help: help})
	}
	m := &UpdateStatus{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_status_state", Help: "1 for the state of the update: Idle, Progressing, Waiting, Stuck, or Unknown.",
		}, []string{"state"}),
		actionRequired: gauge("action_required", "1 if manual action is required for the update to continue, 0 otherwise."),
		insights: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_status_insights", Help: "Number of insights in the UpdateStatus, by level.",
		}, []string{"level"}),
		truncated:    gauge("truncated", "1 if the UpdateStatus is incomplete because of its limits, 0 otherwise."),
		lastPass:     gauge("last_pass_timestamp_seconds", "Time at which the published status was last current."),
		writes:       counter("writes_total", "Number of writes of the UpdateStatus."),
		writtenBytes: counter("written_bytes_total", "Number of bytes sent to write the UpdateStatus."),
		informer: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_informer_reachable", Help: "1 if the update informer responds, 0 otherwise. Absent for disabled informers.",
		}, []string{"informer"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_informer_requests_total",
			Help: "Number of requests to an update informer, by handler (discovery, status, plan) and outcome: Success, Failure, Wait, Invalid, Rejected, or Unreachable.",
		}, []string{"informer", "handler", "outcome"}),
	}
	m.addPlans()
	for _, c := range []prometheus.Collector{
		m.state, m.actionRequired, m.insights, m.truncated, m.lastPass, m.writes, m.writtenBytes, m.informer, m.requests,
		m.planStartable, m.planInsights, m.planAnalysis,
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addPlans creates the metrics about UpdatePlans.
func (m *UpdateStatus) addPlans() {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "managed_upgrade_plan_" + name, Help: help}, labels)
	}
	m.planStartable = gauge("startable", "1 if the UpdatePlan of the release currently allows the update, 0 otherwise. Absent if there is no UpdatePlan.", "release")
	m.planInsights = gauge("insights", "Number of insights that need acceptance in the UpdatePlan of the release, by whether they have been accepted.", "release", "accepted")
	m.planAnalysis = gauge("last_analysis_timestamp_seconds", "Time at which the last analysis of the update to the release was completed. Absent if there was no analysis.", "release")
}

// SetPlans replaces the state of the UpdatePlans.
func (m *UpdateStatus) SetPlans(plans []PlanSnapshot) {
	m.planStartable.Reset()
	m.planInsights.Reset()
	m.planAnalysis.Reset()
	for _, p := range plans {
		release := label(p.Release)
		m.planStartable.WithLabelValues(release).Set(boolToFloat(p.Startable))
		m.planInsights.WithLabelValues(release, "true").Set(float64(p.Accepted))
		m.planInsights.WithLabelValues(release, "false").Set(float64(p.Unaccepted))
		if !p.Analyzed.IsZero() {
			m.planAnalysis.WithLabelValues(release).Set(seconds(p.Analyzed))
		}
	}
}

// SetStatusTime sets the time at which the published UpdateStatus was last current.
func (m *UpdateStatus) SetStatusTime(at time.Time) { m.lastPass.Set(seconds(at)) }

// SetStatus replaces the state of the UpdateStatus.
func (m *UpdateStatus) SetStatus(status updatev1beta1.UpdateStatusStatus) {
	if a := status.Assessment; a != nil {
		m.state.Reset()
		m.state.WithLabelValues(string(a.State)).Set(1)
		m.actionRequired.Set(boolToFloat(a.ActionRequired))
	}
	levels := map[updatev1beta1.Level]int{}
	for _, level := range updatev1beta1.Levels {
		levels[level] = 0
	}
	truncated := false
	for _, section := range status.Sections() {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				levels[of.Insights[i].Impact.Level]++
				truncated = truncated || of.Name == updatev1beta1.StatusControllerInformer && of.Insights[i].Impact.Reason == updatev1beta1.ReasonTruncated
			}
		}
	}
	for level, n := range levels {
		m.insights.WithLabelValues(label(string(level))).Set(float64(n))
	}
	m.truncated.Set(boolToFloat(truncated))
}

// ObserveStatusWrite counts a write of the given size.
func (m *UpdateStatus) ObserveStatusWrite(bytes int) {
	m.writes.Inc()
	m.writtenBytes.Add(float64(bytes))
}

// ObserveInformerRequest counts a request to an informer.
func (m *UpdateStatus) ObserveInformerRequest(informer, handler, outcome string) {
	m.requests.WithLabelValues(label(informer), handler, outcome).Inc()
}

// SetInformerReachable sets whether an informer responds.
func (m *UpdateStatus) SetInformerReachable(informer string, reachable bool) {
	m.informer.WithLabelValues(label(informer)).Set(boolToFloat(reachable))
}

// DeleteInformer removes the series of an informer.
func (m *UpdateStatus) DeleteInformer(informer string) {
	m.informer.DeleteLabelValues(label(informer))
	m.requests.DeletePartialMatch(prometheus.Labels{"informer": label(informer)})
}
