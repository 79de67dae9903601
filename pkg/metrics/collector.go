// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Snapshot is the state of an upgrade after a reconcile.
type Snapshot struct {
	// Kind is the kind of the object that requests the upgrade.
	Kind            schema.GroupKind
	Namespace, Name string
	// Record is the record of the attempt, and Conditions are the conditions in the status.
	Record     history.Record
	Conditions []metav1.Condition
	// Slow reports whether the current step is taking longer than expected.
	Slow bool
	// Held reports whether a hold prevents the upgrade from being committed.
	Held bool
	// StartAfter and StartBefore are the window of an upgrade that waits in its steps. They are zero
	// if the kind has no window.
	StartAfter, StartBefore time.Time
	// At is when the reconcile ended, and Err is its error.
	At  time.Time
	Err error
}

var (
	objectLabels  = []string{"kind", "namespace", "name"}
	versionLabels = append(objectLabels[:3:3], "version")

	phase = prometheus.NewDesc("managed_upgrade_phase",
		"1 for the current phase of the upgrade.", append(versionLabels[:4:4], "phase"), nil)
	condition = prometheus.NewDesc("managed_upgrade_condition_timestamp_seconds",
		"Time of the last transition of each condition of the upgrade.", append(versionLabels[:4:4], "condition", "status", "reason"), nil)
	step = prometheus.NewDesc("managed_upgrade_step_timestamp_seconds",
		"Start time of the current step.", append(versionLabels[:4:4], "step"), nil)
	slow = prometheus.NewDesc("managed_upgrade_step_slow",
		"1 if the current step is taking longer than expected, 0 otherwise.", append(versionLabels[:4:4], "step"), nil)
	held = prometheus.NewDesc("managed_upgrade_held",
		"1 if the upgrade is on hold because of the stop annotation of the ClusterVersion or a pause, 0 otherwise.", versionLabels, nil)
	startAfter = prometheus.NewDesc("managed_upgrade_job_start_after_timestamp_seconds",
		"Earliest start time of an UpgradeJob that has not ended.", versionLabels, nil)
	startBefore = prometheus.NewDesc("managed_upgrade_job_start_before_timestamp_seconds",
		"Time by which an UpgradeJob that has not ended must have commenced.", versionLabels, nil)
	lastSync = prometheus.NewDesc("managed_upgrade_last_sync_timestamp_seconds",
		"Time of the last successful reconcile of an unfinished upgrade, or of the first reconcile if none has succeeded.", objectLabels, nil)
)

// SetUpgrade replaces the state of an upgrade.
func (m *Upgrades) SetUpgrade(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{s.Kind, s.Namespace, s.Name}
	m.upgrades[k] = s
	_, known := m.synced[k]
	switch {
	case s.Record.CompleteTime != nil: // it is no longer reconciled
		delete(m.synced, k)
	case s.Err == nil || !known:
		m.synced[k] = s.At
	}
}

// DeleteUpgrade removes the series of an upgrade.
func (m *Upgrades) DeleteUpgrade(kind schema.GroupKind, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.upgrades, key{kind, namespace, name})
	delete(m.synced, key{kind, namespace, name})
}

// upgradeCollector collects the series of the upgrades.
type upgradeCollector struct{ *Upgrades }

// Describe implements prometheus.Collector.
func (upgradeCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{phase, condition, step, slow, held, startAfter, startBefore, lastSync} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c upgradeCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, upgrade := range c.upgrades {
		upgrade.collect(to)
	}
	for k, at := range c.synced {
		to <- gauge(lastSync, seconds(at), k.kind.String(), k.namespace, k.name)
	}
}

func (s Snapshot) collect(to chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- gauge(desc, value, append([]string{s.Kind.String(), s.Namespace, s.Name, label(s.Record.Version)}, labels...)...)
	}
	emit(phase, 1, string(s.Record.Phase))
	emit(held, boolToFloat(s.Held))
	if !s.StartAfter.IsZero() {
		emit(startAfter, seconds(s.StartAfter))
		emit(startBefore, seconds(s.StartBefore))
	}
	seen := map[[3]string]bool{} // a damaged status may contain a condition twice, but series must be unique
	for _, c := range s.Conditions {
		labels := [3]string{label(c.Type), label(string(c.Status)), label(c.Reason)}
		if !seen[labels] {
			emit(condition, seconds(c.LastTransitionTime.Time), labels[:]...)
		}
		seen[labels] = true
	}
	if c := s.Record.Running(); c != nil {
		emit(step, seconds(c.StartTime.Time), label(c.Type))
		emit(slow, boolToFloat(s.Slow), label(c.Type))
	}
}

func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// maxLabel is the maximum size, in bytes, of label values that other clients of the API server can
// write.
const maxLabel = 128

// label sanitizes a label value: valid UTF-8 of limited length without control characters.
func label(value string) string { return text.Sanitize(value, maxLabel) }

// seconds converts a time to seconds since the epoch, as used by Prometheus.
func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
