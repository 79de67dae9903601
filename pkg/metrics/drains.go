// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// BlockReason is what kept a pod on a node that was being drained.
type BlockReason string

const (
	// BlockedByPDB is a pod that a PodDisruptionBudget guards.
	BlockedByPDB BlockReason = "PodDisruptionBudget"
	// BlockedByTermination is a pod that was deleted and did not end.
	BlockedByTermination BlockReason = "Termination"
	// BlockedByOther is a pod of which neither is true.
	BlockedByOther BlockReason = "Other"
)

// Drains are the metrics about the drains of nodes.
type Drains struct {
	forced  *prometheus.CounterVec
	blocked *prometheus.GaugeVec
}

// NewDrains makes the metrics and registers them.
func NewDrains(registry prometheus.Registerer) (*Drains, error) {
	d := &Drains{
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_forced_drains_total",
			Help: "Pods that were forced off a node that was being drained, by what had held them. One whose deletion the API server has carried out and not confirmed is told in Events and not counted.",
		}, []string{"hold"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_node_drain_blocked",
			Help: "Whether a pod holds up the drain of the node past its time: 1 while one does.",
		}, []string{"node"}),
	}
	for _, collector := range []prometheus.Collector{d.forced, d.blocked} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	for _, reason := range []BlockReason{BlockedByPDB, BlockedByTermination, BlockedByOther} {
		d.forced.WithLabelValues(string(reason)) // a rate needs a beginning
	}
	return d, nil
}

// IncForced counts a pod that was forced.
func (d *Drains) IncForced(reason BlockReason) { d.forced.WithLabelValues(string(reason)).Inc() }

// SetBlocked shows that the drain of a node is held up past its time, or drops
// the series if it is not, or the node is gone.
func (d *Drains) SetBlocked(node string, blocked bool) {
	if !blocked {
		d.blocked.DeleteLabelValues(node)
		return
	}
	d.blocked.WithLabelValues(node).Set(1)
}
