// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Fleets contains the metrics about fleet upgrades. The number of series does not depend on the
// number of clusters. The series of an object are removed when it is deleted.
type Fleets struct {
	stepDuration  *prometheus.HistogramVec
	eventFailures prometheus.Counter

	mu     sync.Mutex
	fleets map[fleetKey]Fleet
}

// fleetKey identifies a ManagedClustersUpgrade.
type fleetKey struct{ namespace, name string }

// Fleet is the state of a fleet upgrade after a reconcile.
type Fleet struct {
	// Namespace and Name identify the ManagedClustersUpgrade.
	Namespace, Name string
	// Clusters is the number of clusters by state.
	Clusters map[string]int32
	// Failures is the number of failed clusters by reason. The number of reasons is limited.
	Failures map[string]int32
	// Stalled is the number of clusters in flight that make no progress.
	Stalled int32
	// BudgetLeft is the number of further failures that are tolerated; nil for no limit.
	BudgetLeft *int
	// Blocked is the reason why no cluster can start, or empty.
	Blocked string
	// OldestInFlight is the start time of the longest-running cluster, or zero if no cluster is in
	// flight.
	OldestInFlight time.Time
	// LastPass is when the last reconcile ended without an error or the upgrade was deleted. It is
	// zero if the upgrade is finished and no longer needs reconciling.
	LastPass time.Time
}

var (
	fleetLabels = []string{"namespace", "name"}

	fleetClusters = prometheus.NewDesc("managed_upgrade_fleet_clusters",
		"Number of clusters in the fleet, by state: NotStarted, Initialized, PartialUpgrade, Complete, or Failed.", append(fleetLabels[:2:2], "state"), nil)
	fleetFailures = prometheus.NewDesc("managed_upgrade_fleet_failed_clusters",
		"Number of failed clusters in the fleet, by reason. Only the most frequent reasons are shown.", append(fleetLabels[:2:2], "reason"), nil)
	fleetStalled = prometheus.NewDesc("managed_upgrade_fleet_stalled_clusters",
		"Number of clusters in flight that are making no progress.", fleetLabels, nil)
	fleetBudget = prometheus.NewDesc("managed_upgrade_fleet_budget_left",
		"Number of further failures that the fleet tolerates; negative if it has stopped. Absent if there is no limit.", fleetLabels, nil)
	fleetBlocked = prometheus.NewDesc("managed_upgrade_fleet_admission_blocked",
		"1 for the reason why no cluster of the fleet can start. Absent if clusters can start.", append(fleetLabels[:2:2], "reason"), nil)
	fleetOldest = prometheus.NewDesc("managed_upgrade_fleet_oldest_in_flight_timestamp_seconds",
		"Start time of the longest-running cluster. Absent if no cluster is in flight.", fleetLabels, nil)
	fleetLastPass = prometheus.NewDesc("managed_upgrade_fleet_last_pass_timestamp_seconds",
		"Time of the last successful reconcile of an unfinished fleet upgrade, or of its deletion.", fleetLabels, nil)
)

// NewFleets creates and registers the metrics.
func NewFleets(registry prometheus.Registerer) (*Fleets, error) {
	m := &Fleets{
		fleets: map[fleetKey]Fleet{},
		stepDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "managed_upgrade_fleet_step_duration_seconds", Buckets: durationBuckets(),
			Help: "Duration of the steps of clusters in fleets, by result: done, skipped, or failed.",
		}, []string{"step", "result"}),
		eventFailures: newEventFailures(),
	}
	err := errors.Join(registry.Register(fleetCollector{m}), registry.Register(m.stepDuration), registry.Register(m.eventFailures))
	if err != nil {
		return nil, err
	}
	return m, nil
}

// SetFleet replaces the state of a fleet.
func (m *Fleets) SetFleet(f Fleet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fleets[fleetKey{f.Namespace, f.Name}] = f
}

// DeleteFleet removes the series of a fleet.
func (m *Fleets) DeleteFleet(namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fleets, fleetKey{namespace, name})
}

// ObserveStep records a finished step of a cluster. It ignores unfinished steps.
func (m *Fleets) ObserveStep(c history.StepCondition) {
	if c.CompleteTime != nil && c.StartTime != nil {
		m.stepDuration.WithLabelValues(label(c.Type), stepResult(c)).Observe(c.CompleteTime.Sub(c.StartTime.Time).Seconds())
	}
}

// IncEventFailures counts a Kubernetes Event that could not be written.
func (m *Fleets) IncEventFailures() { m.eventFailures.Inc() }

// fleetCollector collects the series of the fleets.
type fleetCollector struct{ *Fleets }

// Describe implements prometheus.Collector.
func (fleetCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{fleetClusters, fleetFailures, fleetStalled, fleetBudget, fleetBlocked, fleetOldest, fleetLastPass} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c fleetCollector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.fleets {
		f.collect(to)
	}
}

func (f *Fleet) collect(to chan<- prometheus.Metric) {
	emit := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- gauge(desc, value, append([]string{f.Namespace, f.Name}, labels...)...)
	}
	for state, n := range f.Clusters {
		emit(fleetClusters, float64(n), state)
	}
	failures := map[string]int32{} // several reasons may have the same label, but series must be unique
	for reason, n := range f.Failures {
		failures[label(reason)] += n
	}
	for reason, n := range failures {
		emit(fleetFailures, float64(n), reason)
	}
	emit(fleetStalled, float64(f.Stalled))
	if f.BudgetLeft != nil {
		emit(fleetBudget, float64(*f.BudgetLeft))
	}
	if f.Blocked != "" {
		emit(fleetBlocked, 1, label(f.Blocked))
	}
	if !f.OldestInFlight.IsZero() {
		emit(fleetOldest, seconds(f.OldestInFlight))
	}
	if !f.LastPass.IsZero() {
		emit(fleetLastPass, seconds(f.LastPass))
	}
}
