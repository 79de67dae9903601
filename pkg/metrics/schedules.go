// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schedule is the state of an object's schedule after a reconcile.
type Schedule struct {
	// Kind is the kind of the object with the schedule.
	Kind            schema.GroupKind
	Namespace, Name string
	// Next is the next start that is not suspended, or zero.
	Next time.Time
	// Accepted reports whether the spec is valid.
	Accepted bool
	// Suspended reports whether the next start is suspended.
	Suspended bool
	// LastSlot is the last start that was handled, or zero, and LastResult is its result.
	LastSlot   time.Time
	LastResult string
}

// Schedules contains the metrics about schedules. Deleted objects have no series.
type Schedules struct {
	results []string

	mu        sync.Mutex
	schedules map[key]Schedule
	slots     map[key]map[string]float64
}

var (
	scheduleNext = prometheus.NewDesc("managed_upgrade_schedule_next_timestamp_seconds",
		"Next start time that is not suspended. Absent if there is none.", objectLabels, nil)
	scheduleSuspended = prometheus.NewDesc("managed_upgrade_schedule_suspended",
		"1 if the next scheduled start is suspended, 0 otherwise.", objectLabels, nil)
	scheduleAccepted = prometheus.NewDesc("managed_upgrade_schedule_accepted",
		"1 if the schedule and the template are valid, 0 otherwise.", objectLabels, nil)
	scheduleLast = prometheus.NewDesc("managed_upgrade_schedule_last_slot_timestamp_seconds",
		"Time of the last scheduled start that was handled, by result. Unlike a counter, it survives a restart of the operator.", append(objectLabels[:3:3], "result"), nil)
	scheduleSlots = prometheus.NewDesc("managed_upgrade_schedule_slots_total",
		"Number of scheduled starts that were handled, by result: JobCreated, or the reason why there is no UpgradeJob.", append(objectLabels[:3:3], "result"), nil)
)

// NewSchedules creates and registers the metrics. results lists the results with series from the
// beginning, because rate() needs an initial sample.
func NewSchedules(registry prometheus.Registerer, results ...string) (*Schedules, error) {
	m := &Schedules{results: results, schedules: map[key]Schedule{}, slots: map[key]map[string]float64{}}
	if err := registry.Register(m); err != nil {
		return nil, err
	}
	return m, nil
}

// SetSchedule replaces the state of a schedule.
func (m *Schedules) SetSchedule(s Schedule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{s.Kind, s.Namespace, s.Name}
	m.schedules[k] = s
	if m.slots[k] == nil {
		m.slots[k] = map[string]float64{}
		for _, result := range m.results {
			m.slots[k][result] = 0
		}
	}
}

// AddSlots counts starts that were handled with the same result. Call SetSchedule first.
func (m *Schedules) AddSlots(kind schema.GroupKind, namespace, name, result string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slots := m.slots[key{kind, namespace, name}]; slots != nil {
		slots[result] += float64(n)
	}
}

// DeleteSchedule removes the series of a schedule.
func (m *Schedules) DeleteSchedule(kind schema.GroupKind, namespace, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.schedules, key{kind, namespace, name})
	delete(m.slots, key{kind, namespace, name})
}

// Describe implements prometheus.Collector.
func (m *Schedules) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{scheduleNext, scheduleSuspended, scheduleAccepted, scheduleLast, scheduleSlots} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Schedules) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.schedules {
		labels := []string{k.kind.String(), k.namespace, k.name}
		if !s.Next.IsZero() {
			to <- gauge(scheduleNext, seconds(s.Next), labels...)
		}
		to <- gauge(scheduleSuspended, boolToFloat(s.Suspended), labels...)
		to <- gauge(scheduleAccepted, boolToFloat(s.Accepted), labels...)
		if !s.LastSlot.IsZero() {
			to <- gauge(scheduleLast, seconds(s.LastSlot), append(labels[:3:3], label(s.LastResult))...)
		}
		for result, n := range m.slots[k] {
			to <- prometheus.MustNewConstMetric(scheduleSlots, prometheus.CounterValue, n, append(labels[:3:3], label(result))...)
		}
	}
}
