// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Hold is what kept a pod on a node that was being drained.
type Hold string

const (
	// HeldByBudget is a pod that a PodDisruptionBudget guards.
	HeldByBudget Hold = "PodDisruptionBudget"
	// HeldInTermination is a pod that was deleted and did not end.
	HeldInTermination Hold = "Termination"
	// HeldByOther is a pod of which neither is true.
	HeldByOther Hold = "Other"
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
	for _, hold := range []Hold{HeldByBudget, HeldInTermination, HeldByOther} {
		d.forced.WithLabelValues(string(hold)) // a rate needs a beginning
	}
	return d, nil
}

// Forced counts a pod that was forced.
func (d *Drains) Forced(hold Hold) { d.forced.WithLabelValues(string(hold)).Inc() }

// Blocked shows that the drain of a node is held up past its time, or drops
// the series if it is not, or the node is gone.
func (d *Drains) Blocked(node string, blocked bool) {
	if !blocked {
		d.blocked.DeleteLabelValues(node)
		return
	}
	d.blocked.WithLabelValues(node).Set(1)
}
