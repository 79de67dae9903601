// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgrades contains the metrics about upgrades. Gauges show the state after the last reconcile;
// deleted objects and earlier states have no series.
type Upgrades struct {
	stepDuration        *prometheus.HistogramVec
	upgradeDuration     *prometheus.HistogramVec
	successes           *prometheus.CounterVec
	failures            *prometheus.CounterVec
	cancellations       *prometheus.CounterVec
	skips               *prometheus.CounterVec
	healthCheckFailures *prometheus.CounterVec
	eventFailures       prometheus.Counter
	valid               prometheus.Gauge

	mu       sync.Mutex
	upgrades map[key]Snapshot
	synced   map[key]time.Time
	checks   map[string]healthCheckResult
}

// key identifies an upgrade's object.
type key struct {
	kind            schema.GroupKind
	namespace, name string
}

// The metric of undelivered notifications is shared by all channels.
const (
	// NotificationFailures is its name. Its only label is the channel.
	NotificationFailures = "managed_upgrade_notification_failures_total"
	// NotificationFailuresHelp is its help text.
	NotificationFailuresHelp = "Number of failed attempts to deliver a notification, by channel: Kubernetes Events or the webhook."
)

// newEventFailures returns the counter of Kubernetes Events that could not be written. Every
// program has one.
func newEventFailures() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: NotificationFailures, Help: NotificationFailuresHelp, ConstLabels: prometheus.Labels{"channel": "events"},
	})
}

// NewUpgrades creates and registers the metrics.
func NewUpgrades(registry prometheus.Registerer) (*Upgrades, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: durationBuckets()}, labels)
	}
	m := &Upgrades{
		upgrades: map[key]Snapshot{}, synced: map[key]time.Time{}, checks: map[string]healthCheckResult{},
		stepDuration: histogram("managed_upgrade_step_duration_seconds",
			"Duration of steps, by result: done, skipped, or failed.", "kind", "type", "step", "result"),
		upgradeDuration: histogram("managed_upgrade_duration_seconds",
			"Duration of upgrades since their first step, by result: succeeded, failed, cancelled, or skipped.", "kind", "type", "result"),
		successes:           counter("managed_upgrade_successes_total", "Number of upgrades that succeeded.", "kind", "type"),
		failures:            counter("managed_upgrade_failures_total", "Number of upgrades that failed, by reason. A canceled upgrade is not a failure.", "kind", "type", "reason"),
		cancellations:       counter("managed_upgrade_cancellations_total", "Number of upgrades that were canceled before they commenced.", "kind", "type"),
		skips:               counter("managed_upgrade_skipped_total", "Number of upgrades that were skipped, by reason: they neither commenced nor failed.", "kind", "type", "reason"),
		healthCheckFailures: counter("managed_upgrade_health_check_failures_total", "Number of times a health check started failing or could not be completed, by check.", "check"),
		eventFailures:       newEventFailures(),
		valid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "managed_upgrade_configuration_valid",
			Help: "1 if the current configuration file is in effect, 0 if it is invalid and the last valid one is still in use.",
		}),
	}
	m.SetConfigValid(true) // the operator does not start with an invalid configuration
	var errs []error
	for _, collector := range []prometheus.Collector{
		upgradeCollector{m},
		m.stepDuration, m.upgradeDuration, m.successes, m.failures, m.cancellations, m.skips,
		m.healthCheckFailures, m.eventFailures, m.valid,
	} {
		errs = append(errs, registry.Register(collector))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return m, nil
}

// RegisterBuildInfo registers the version of the binary.
func RegisterBuildInfo(registry prometheus.Registerer, version string) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "managed_upgrade_build_info", Help: "Always 1. The labels contain the versions of the operator and of Go.",
		ConstLabels: prometheus.Labels{"version": label(version), "goversion": runtime.Version()},
	})
	info.Set(1)
	return registry.Register(info)
}

// durationBuckets returns the histogram buckets. A step takes between a minute and half a day, and
// an upgrade up to two days.
func durationBuckets() []float64 {
	var bounds []float64
	for _, d := range []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
		24 * time.Hour, 48 * time.Hour,
	} {
		bounds = append(bounds, d.Seconds())
	}
	return bounds
}

// ObserveStep records a finished step. It ignores unfinished steps.
func (m *Upgrades) ObserveStep(kind schema.GroupKind, upgradeType string, c history.StepCondition) {
	if c.CompleteTime == nil || c.StartTime == nil {
		return
	}
	m.stepDuration.WithLabelValues(kind.String(), upgradeType, label(c.Type), stepResult(c)).Observe(c.CompleteTime.Sub(c.StartTime.Time).Seconds())
}

// stepResult returns the result of a step.
func stepResult(c history.StepCondition) string {
	switch {
	case c.Status == metav1.ConditionFalse:
		return "failed"
	case c.Reason != engine.ReasonDone:
		return "skipped"
	}
	return "done"
}

// ObserveEnd records that an attempt has ended in a phase. reason is the reason of a failure. A
// canceled upgrade does not count as a failure. An attempt with no duration never started.
func (m *Upgrades) ObserveEnd(kind schema.GroupKind, upgradeType string, ended history.Phase, reason string, took time.Duration) {
	result := "failed"
	switch {
	case ended == history.PhaseUpgraded:
		result = "succeeded"
		m.successes.WithLabelValues(kind.String(), upgradeType).Inc()
	case reason == engine.ReasonCancelled:
		result = "cancelled"
		m.cancellations.WithLabelValues(kind.String(), upgradeType).Inc()
	case ended == history.PhaseSkipped:
		result = "skipped"
		m.skips.WithLabelValues(kind.String(), upgradeType, label(reason)).Inc()
	default:
		m.failures.WithLabelValues(kind.String(), upgradeType, label(reason)).Inc()
	}
	if took > 0 {
		m.upgradeDuration.WithLabelValues(kind.String(), upgradeType, result).Observe(took.Seconds())
	}
}

// IncEventFailures counts a Kubernetes Event that could not be written.
func (m *Upgrades) IncEventFailures() { m.eventFailures.Inc() }

// SetConfigValid sets whether the current configuration file is in effect.
func (m *Upgrades) SetConfigValid(ok bool) {
	m.valid.Set(boolToFloat(ok))
}

// healthCheckResult is the last result of a health check.
type healthCheckResult struct {
	at time.Time
	ok bool
}

// healthCheckTTL is how long a result is valid. While a step waits for a check, the check runs at
// least every five minutes.
const healthCheckTTL = 10 * time.Minute

// ObserveHealthCheck counts a health check that fails or could not be completed, unless its last
// result was the same.
func (m *Upgrades) ObserveHealthCheck(check string, ok bool, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known := m.checks[check]
	m.checks[check] = healthCheckResult{at, ok}
	if !ok && (!known || last.ok || at.Sub(last.at) > healthCheckTTL) {
		m.healthCheckFailures.WithLabelValues(check).Inc()
	}
}

func boolToFloat(value bool) float64 {
	if value {
		return 1
	}
	return 0
}
