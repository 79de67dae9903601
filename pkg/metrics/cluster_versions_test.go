// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

func TestClusterVersionMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.NewClusterVersions(registry)
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, registry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	want("before the ClusterVersion is read")
	m.SetUpgrading(true)
	m.AddDrift([]string{"channel", "upstream"})
	m.AddDrift([]string{"channel"})
	want("during an update", "cluster_upgrading{} 1", "clusterversion_drift_total{field=channel} 2", "clusterversion_drift_total{field=upstream} 1")
	if problems, err := promlint.NewWithMetricFamilies(gather(t, registry)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("promlint: %v %v", problems, err)
	}
	m.SetUpgrading(false)
	want("after the update", "cluster_upgrading{} 0", "clusterversion_drift_total{field=channel} 2", "clusterversion_drift_total{field=upstream} 1")
	m.ClearUpgrading()
	want("without a ClusterVersion", "clusterversion_drift_total{field=channel} 2", "clusterversion_drift_total{field=upstream} 1")
	if _, err := metrics.NewClusterVersions(registry); err == nil {
		t.Error("registering twice is no error")
	}
}
