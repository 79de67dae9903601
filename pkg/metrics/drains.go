// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Drains contains the metrics about node drains.
type Drains struct {
	forced  *prometheus.CounterVec
	blocked *prometheus.GaugeVec
}

// NewDrains creates and registers the metrics. reasons lists all reasons that may keep a pod on a
// draining node.
func NewDrains(registry prometheus.Registerer, reasons ...string) (*Drains, error) {
	d := &Drains{
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_forced_drains_total",
			Help: "Number of pods force-deleted from draining nodes, by blocking reason. Deletions that were applied but not acknowledged are reported only as Events.",
		}, []string{"reason"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_node_drain_blocked",
			Help: "1 while a pod is blocking the drain of the node past its deadline.",
		}, []string{"node"}),
	}
	for _, collector := range []prometheus.Collector{d.forced, d.blocked} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	for _, reason := range reasons {
		d.forced.WithLabelValues(reason) // rate() needs an initial sample
	}
	return d, nil
}

// IncForced counts a force-deleted pod by the reason that had kept it.
func (d *Drains) IncForced(reason string) { d.forced.WithLabelValues(reason).Inc() }

// SetBlocked sets whether the drain of a node is blocked past its deadline. Other nodes have no
// series.
func (d *Drains) SetBlocked(node string, blocked bool) {
	if !blocked {
		d.blocked.DeleteLabelValues(node)
		return
	}
	d.blocked.WithLabelValues(node).Set(1)
}
