// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Look is what a look at an upgrade has shown.
type Look struct {
	Namespace, Name string
	// Record is that of the attempt, Conditions are those of the status.
	Record     history.History
	Conditions []metav1.Condition
	// Slow says whether the step that is being taken takes longer than it should.
	Slow bool
	// At is when the look ended; Err is nil if it ended well.
	At  time.Time
	Err error
}

var (
	ofUpgrade = []string{"namespace", "name"}
	ofVersion = []string{"namespace", "name", "version"}

	phase = prometheus.NewDesc("managed_upgrade_phase",
		"The phase that the upgrade is in: 1 for that phase.", append(ofVersion, "phase"), nil)
	condition = prometheus.NewDesc("managed_upgrade_condition_timestamp_seconds",
		"What the conditions of the upgrade say, and since when.", append(ofVersion, "condition", "status", "reason"), nil)
	step = prometheus.NewDesc("managed_upgrade_step_timestamp_seconds",
		"The step that is being taken, and since when.", append(ofVersion, "step"), nil)
	slow = prometheus.NewDesc("managed_upgrade_step_slow",
		"Whether the step that is being taken takes longer than it should.", append(ofVersion, "step"), nil)
	lastSync = prometheus.NewDesc("managed_upgrade_last_sync_timestamp_seconds",
		"When an upgrade that is not over was last looked at without an error; if it never was, when that was first tried.", ofUpgrade, nil)
)

// Show shows an upgrade as it was found, in place of what was shown of it before.
func (m *Metrics) Show(l Look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{l.Namespace, l.Name}
	m.looks[k] = l
	_, known := m.synced[k]
	switch {
	case l.Record.CompleteTime != nil: // nobody looks at it any more
		delete(m.synced, k)
	case l.Err == nil || !known:
		m.synced[k] = l.At
	}
}

// Forget shows nothing any more of an upgrade that is gone.
func (m *Metrics) Forget(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.looks, key{namespace, name})
	delete(m.synced, key{namespace, name})
}

// shown collects what is shown of the upgrades.
type shown struct{ *Metrics }

// Describe names the metrics.
func (shown) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{phase, condition, step, slow, lastSync} {
		to <- desc
	}
}

// Collect makes the series as they are now.
func (s shown) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.looks {
		l.collect(to)
	}
	for k, at := range s.synced {
		to <- gauge(lastSync, seconds(at), k.namespace, k.name)
	}
}

func (l Look) collect(to chan<- prometheus.Metric) {
	show := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- gauge(desc, value, append([]string{l.Namespace, l.Name, l.Record.Version}, labels...)...)
	}
	show(phase, 1, string(l.Record.Phase))
	for _, c := range l.Conditions {
		show(condition, seconds(c.LastTransitionTime.Time), c.Type, string(c.Status), c.Reason)
	}
	for _, c := range l.Record.Conditions {
		if c.CompleteTime == nil && c.StartTime != nil {
			show(step, seconds(c.StartTime.Time), c.Type)
			show(slow, number(l.Slow), c.Type)
			break // one is taken at a time
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// seconds is a time as Prometheus knows it.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
