// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// BlockReason is what keeps a pod on a node that is being drained.
type BlockReason string

const (
	// BlockedByPDB is the reason of a pod that a PodDisruptionBudget selects.
	BlockedByPDB BlockReason = "PodDisruptionBudget"
	// BlockedByTermination is the reason of a pod that was deleted and has not terminated.
	BlockedByTermination BlockReason = "Termination"
	// BlockedByOther is the reason of all other pods.
	BlockedByOther BlockReason = "Other"
)

// Drains are the metrics about the drains of nodes.
type Drains struct {
	forced  *prometheus.CounterVec
	blocked *prometheus.GaugeVec
}

// NewDrains creates the metrics and registers them.
func NewDrains(registry prometheus.Registerer) (*Drains, error) {
	d := &Drains{
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_forced_drains_total",
			Help: "Pods force-deleted from draining nodes, by blocking reason. Deletions that were applied but not acknowledged are reported as Events only.",
		}, []string{"reason"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_node_drain_blocked",
			Help: "1 while a pod blocks the drain of the node past its deadline.",
		}, []string{"node"}),
	}
	for _, collector := range []prometheus.Collector{d.forced, d.blocked} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	for _, reason := range []BlockReason{BlockedByPDB, BlockedByTermination, BlockedByOther} {
		d.forced.WithLabelValues(string(reason)) // rate() needs a first sample
	}
	return d, nil
}

// IncForced counts a pod that was forced.
func (d *Drains) IncForced(reason BlockReason) { d.forced.WithLabelValues(string(reason)).Inc() }

// SetBlocked sets whether the drain of a node is blocked past its deadline. There is no series for
// nodes that are not.
func (d *Drains) SetBlocked(node string, blocked bool) {
	if !blocked {
		d.blocked.DeleteLabelValues(node)
		return
	}
	d.blocked.WithLabelValues(node).Set(1)
}
