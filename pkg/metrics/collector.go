// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Snapshot is what a look at an upgrade has shown.
type Snapshot struct {
	Namespace, Name string
	// Record is that of the attempt, Conditions are those of the status.
	Record     history.Record
	Conditions []metav1.Condition
	// Slow says whether the step that is being taken takes longer than it should.
	Slow bool
	// At is when the look ended; Err is nil if it ended well.
	At  time.Time
	Err error
}

var (
	upgradeLabels = []string{"namespace", "name"}
	versionLabels = []string{"namespace", "name", "version"}

	phase = prometheus.NewDesc("managed_upgrade_phase",
		"The phase that the upgrade is in: 1 for that phase.", append(versionLabels, "phase"), nil)
	condition = prometheus.NewDesc("managed_upgrade_condition_timestamp_seconds",
		"What the conditions of the upgrade say, and since when.", append(versionLabels, "condition", "status", "reason"), nil)
	step = prometheus.NewDesc("managed_upgrade_step_timestamp_seconds",
		"The step that is being taken, and since when.", append(versionLabels, "step"), nil)
	slow = prometheus.NewDesc("managed_upgrade_step_slow",
		"Whether the step that is being taken takes longer than it should.", append(versionLabels, "step"), nil)
	lastSync = prometheus.NewDesc("managed_upgrade_last_sync_timestamp_seconds",
		"When an upgrade that is not over was last looked at without an error; if it never was, when that was first tried.", upgradeLabels, nil)
)

// SetUpgrade shows an upgrade as it was found, in place of what was shown of it before.
func (m *Upgrades) SetUpgrade(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{s.Namespace, s.Name}
	m.upgrades[k] = s
	_, known := m.synced[k]
	switch {
	case s.Record.CompleteTime != nil: // nobody looks at it any more
		delete(m.synced, k)
	case s.Err == nil || !known:
		m.synced[k] = s.At
	}
}

// DeleteUpgrade shows nothing any more of an upgrade that is gone.
func (m *Upgrades) DeleteUpgrade(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.upgrades, key{namespace, name})
	delete(m.synced, key{namespace, name})
}

// upgradeCollector collects what is shown of the upgrades.
type upgradeCollector struct{ *Upgrades }

// Describe names the metrics.
func (upgradeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{phase, condition, step, slow, lastSync} {
		to <- desc
	}
}

// Collect makes the series as they are now.
func (c upgradeCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, upgrade := range c.upgrades {
		upgrade.collect(to)
	}
	for k, at := range c.synced {
		to <- gauge(lastSync, seconds(at), k.namespace, k.name)
	}
}

func (s Snapshot) collect(to chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- gauge(desc, value, append([]string{s.Namespace, s.Name, s.Record.Version}, labels...)...)
	}
	emit(phase, 1, string(s.Record.Phase))
	for _, c := range s.Conditions {
		emit(condition, seconds(c.LastTransitionTime.Time), c.Type, string(c.Status), c.Reason)
	}
	for _, c := range s.Record.Conditions {
		if c.CompleteTime == nil && c.StartTime != nil {
			emit(step, seconds(c.StartTime.Time), c.Type)
			emit(slow, boolToFloat(s.Slow), c.Type)
			break // one is taken at a time
		}
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// seconds is a time as Prometheus knows it.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
