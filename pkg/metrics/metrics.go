// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgrades are the metrics about upgrades. What they show of an upgrade is what
// the last look at it has found: there is no series of one that is gone, nor of
// what was so before.
type Upgrades struct {
	duration            *prometheus.HistogramVec
	failures            *prometheus.CounterVec
	healthCheckFailures *prometheus.CounterVec
	eventFailures       prometheus.Counter
	valid               prometheus.Gauge

	mu       sync.Mutex
	upgrades map[key]Snapshot
	synced   map[key]time.Time
	checks   map[string]healthCheckResult
}

// key is an UpgradeConfig.
type key struct{ namespace, name string }

// What counts notifications that failed is one metric, whoever is told.
const (
	// NotificationFailures is its name; its only label is the channel.
	NotificationFailures = "managed_upgrade_notification_failures_total"
	// NotificationFailuresHelp is what it says.
	NotificationFailuresHelp = "Notifications that could not be delivered, each try, by the channel: Kubernetes Events or the webhook."
)

// NewUpgrades makes the metrics and registers them.
func NewUpgrades(registry prometheus.Registerer) (*Upgrades, error) {
	m := &Upgrades{
		upgrades: map[key]Snapshot{}, synced: map[key]time.Time{}, checks: map[string]healthCheckResult{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "managed_upgrade_step_duration_seconds",
			Help:    "How long steps took, by how they ended: done, skipped or failed.",
			Buckets: durationBuckets(),
		}, []string{"type", "step", "result"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_failures_total",
			Help: "Upgrades that failed, by the reason, such as WindowMissed.",
		}, []string{"type", "reason"}),
		healthCheckFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_health_check_failures_total",
			Help: "How often a health check of the cluster has come to find something, or to find nothing out, by the check.",
		}, []string{"check"}),
		eventFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: NotificationFailures, Help: NotificationFailuresHelp,
			ConstLabels: prometheus.Labels{"channel": "events"},
		}),
		valid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "managed_upgrade_configuration_valid",
			Help: "Whether the operator's configuration is the one that is written: 0 if that has an error, and the last good one is in force.",
		}),
	}
	m.SetConfigValid(true) // with any other the operator does not start
	var errs []error
	for _, collector := range []prometheus.Collector{upgradeCollector{m}, m.duration, m.failures, m.healthCheckFailures, m.eventFailures, m.valid} {
		errs = append(errs, registry.Register(collector))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// durationBuckets are the bounds of the histogram's buckets: steps take from a minute to half a day.
func durationBuckets() []float64 {
	var seconds []float64
	for _, d := range []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	} {
		seconds = append(seconds, d.Seconds())
	}
	return seconds
}

// ObserveStep counts a step that is over.
func (m *Upgrades) ObserveStep(upgradeType string, c history.StepCondition) {
	if c.CompleteTime == nil || c.StartTime == nil {
		return
	}
	result := "done"
	switch {
	case c.Status == metav1.ConditionFalse:
		result = "failed"
	case c.Reason != engine.ReasonDone:
		result = "skipped"
	}
	m.duration.WithLabelValues(upgradeType, c.Type, result).Observe(c.CompleteTime.Sub(c.StartTime.Time).Seconds())
}

// IncFailures counts an upgrade that failed.
func (m *Upgrades) IncFailures(upgradeType, reason string) {
	m.failures.WithLabelValues(upgradeType, reason).Inc()
}

// IncEventFailures counts a Kubernetes Event that could not be written.
func (m *Upgrades) IncEventFailures() { m.eventFailures.Inc() }

// SetConfigValid shows whether the configuration that is written is the one in force.
func (m *Upgrades) SetConfigValid(ok bool) {
	m.valid.Set(boolToFloat(ok))
}

// healthCheckResult is what a health check has found, and when.
type healthCheckResult struct {
	at time.Time
	ok bool
}

// healthCheckTTL is for how long it counts what a health check has found: while
// something waits for it, it is asked every five minutes at least.
const healthCheckTTL = 10 * time.Minute

// ObserveHealthCheck counts a health check that does not find all well, unless that is what
// it found the last time already.
func (m *Upgrades) ObserveHealthCheck(check string, ok bool, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.checks[check]
	m.checks[check] = healthCheckResult{at, ok}
	if !ok && (!known || last.ok || at.Sub(last.at) > healthCheckTTL) {
		m.healthCheckFailures.WithLabelValues(check).Inc()
	}
}

// boolToFloat is 1 for what is so.
func boolToFloat(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
