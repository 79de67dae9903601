// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// ClusterVersions contains the metrics about OpenShift's ClusterVersion.
type ClusterVersions struct {
	drift     *prometheus.CounterVec
	upgrading *prometheus.GaugeVec
}

// NewClusterVersions creates and registers the metrics.
func NewClusterVersions(registry prometheus.Registerer) (*ClusterVersions, error) {
	m := &ClusterVersions{
		drift: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "managed_upgrade_clusterversion_drift_total",
			Help: "Number of times the operator corrected a field of OpenShift's ClusterVersion that another client had changed, by spec field.",
		}, []string{"field"}),
		upgrading: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "managed_upgrade_cluster_upgrading",
			Help: "1 while the cluster version operator is installing an update requested by any client, 0 otherwise. Absent if there is no ClusterVersion.",
		}, nil),
	}
	for _, collector := range []prometheus.Collector{m.drift, m.upgrading} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// AddDrift counts corrections of fields.
func (m *ClusterVersions) AddDrift(fields []string) {
	for _, field := range fields {
		m.drift.WithLabelValues(field).Inc()
	}
}

// SetUpgrading sets whether the cluster version operator is installing an update.
func (m *ClusterVersions) SetUpgrading(upgrading bool) {
	m.upgrading.WithLabelValues().Set(boolToFloat(upgrading))
}

// ClearUpgrading removes the series when the state is unknown.
func (m *ClusterVersions) ClearUpgrading() { m.upgrading.Reset() }
