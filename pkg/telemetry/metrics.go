// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Metrics are the metrics about upgrades.
type Metrics struct {
	phase    *prometheus.GaugeVec
	step     *prometheus.GaugeVec
	slow     *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec

	mu    sync.Mutex
	shown map[string]state // by namespace and name
}

// state is what the gauges of one upgrade show.
type state struct {
	version, phase, step string
	slow                 bool
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	of := []string{"namespace", "name"}
	m := &Metrics{
		shown: map[string]state{},
		phase: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_phase",
			Help: "The phase that the upgrade is in: 1 for that phase.",
		}, append(of, "version", "phase")),
		step: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_step",
			Help: "The step that is being taken: 1 for that step.",
		}, append(of, "version", "step")),
		slow: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_step_slow",
			Help: "Whether the step that is being taken takes longer than it should.",
		}, append(of, "version", "step")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "managed_upgrade_step_duration_seconds",
			Help:    "How long steps took, by how they ended: done, skipped or failed.",
			Buckets: durations(),
		}, []string{"type", "step", "result"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_failures_total",
			Help: "Upgrades that failed, by the reason.",
		}, []string{"type", "reason"}),
	}
	for _, collector := range []prometheus.Collector{m.phase, m.step, m.slow, m.duration, m.failures} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// durations are the bounds of the histogram's buckets: steps take from a minute to half a day.
func durations() []float64 {
	var seconds []float64
	for _, d := range []time.Duration{
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
		time.Hour, 90 * time.Minute, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	} {
		seconds = append(seconds, d.Seconds())
	}
	return seconds
}

// Show sets the gauges of one upgrade to what its record says.
func (m *Metrics) Show(namespace, name string, record history.History, current string, slow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := namespace+"/"+name, state{record.Version, string(record.Phase), current, slow}
	if m.shown[key] == now {
		return
	}
	m.drop(namespace, name)
	m.shown[key] = now
	m.phase.WithLabelValues(namespace, name, now.version, now.phase).Set(1)
	if current == "" {
		return
	}
	m.step.WithLabelValues(namespace, name, now.version, current).Set(1)
	value := 0.0
	if slow {
		value = 1
	}
	m.slow.WithLabelValues(namespace, name, now.version, current).Set(value)
}

// Forget drops the gauges of an upgrade that is gone.
func (m *Metrics) Forget(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(namespace, name)
	delete(m.shown, namespace+"/"+name)
}

func (m *Metrics) drop(namespace, name string) {
	labels := prometheus.Labels{"namespace": namespace, "name": name}
	m.phase.DeletePartialMatch(labels)
	m.step.DeletePartialMatch(labels)
	m.slow.DeletePartialMatch(labels)
}

// Ended counts a step that is over.
func (m *Metrics) Ended(upgradeType string, c history.StepCondition) {
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

// Failed counts an upgrade that failed.
func (m *Metrics) Failed(upgradeType, reason string) {
	m.failures.WithLabelValues(upgradeType, reason).Inc()
}
