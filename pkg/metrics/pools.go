// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// PausedReason is the reason why the operator has paused a pool.
type PausedReason string

const (
	// PausedByDelay is the reason for a pool that the operator resumes in a release window.
	PausedByDelay PausedReason = "Delayed"
	// PausedByFailure is the reason for a pool that a user must resume, because the upgrade or a hook
	// has failed.
	PausedByFailure PausedReason = "Failed"
)

// Pool is the state of a pool.
type Pool struct {
	Updating bool
	// PausedReason is the reason why the operator has paused the pool, or empty.
	PausedReason PausedReason
	// PausedUntil is when the pool should be resumed. For PausedByFailure, it is when the pool was
	// paused.
	PausedUntil time.Time
}

// Pools contains the metrics about machine config pools.
type Pools struct {
	updating *prometheus.GaugeVec
	paused   *prometheus.GaugeVec
}

// NewPools creates and registers the metrics.
func NewPools(registry prometheus.Registerer) (*Pools, error) {
	m := &Pools{
		updating: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_pool_updating",
			Help: "1 while the nodes of the machine config pool are being updated, 0 otherwise.",
		}, []string{"pool"}),
		paused: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_pool_paused_timestamp_seconds",
			Help: "Time by which a machine config pool paused by the operator should be unpaused: the end of its release window (reason Delayed) or the time of the failure because of which it was paused (reason Failed).",
		}, []string{"pool", "reason"}),
	}
	for _, collector := range []prometheus.Collector{m.updating, m.paused} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// SetPool replaces the state of a pool.
func (m *Pools) SetPool(name string, pool Pool) {
	m.updating.WithLabelValues(name).Set(boolToFloat(pool.Updating))
	m.paused.DeletePartialMatch(prometheus.Labels{"pool": name})
	if pool.PausedReason != "" {
		m.paused.WithLabelValues(name, string(pool.PausedReason)).Set(seconds(pool.PausedUntil))
	}
}

// DeletePool removes the series of a pool.
func (m *Pools) DeletePool(name string) {
	m.updating.DeleteLabelValues(name)
	m.paused.DeletePartialMatch(prometheus.Labels{"pool": name})
}
