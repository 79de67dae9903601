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

func TestDrainMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	d, err := metrics.NewDrains(registry, "Other", "PodDisruptionBudget", "Termination")
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, registry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	forced := func(other, budget, termination string) []string {
		return []string{
			"forced_drains_total{reason=Other} " + other, "forced_drains_total{reason=PodDisruptionBudget} " + budget, "forced_drains_total{reason=Termination} " + termination,
		}
	}
	want("at first", forced("0", "0", "0")...)
	d.IncForced("PodDisruptionBudget")
	d.IncForced("PodDisruptionBudget")
	d.IncForced("Termination")
	d.IncForced("Other")
	d.SetBlocked("a", true)
	d.SetBlocked("a", true)
	d.SetBlocked("b", false)
	want("while a drain is blocked", append(forced("1", "2", "1"), "node_drain_blocked{node=a} 1")...)
	if problems, err := promlint.NewWithMetricFamilies(gather(t, registry)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("promlint: %v %v", problems, err)
	}
	d.SetBlocked("a", false)
	want("once it is not", forced("1", "2", "1")...)

	if _, err := metrics.NewDrains(registry, "Other", "PodDisruptionBudget", "Termination"); err == nil {
		t.Error("registering twice is no error")
	}
}
