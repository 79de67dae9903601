// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// gauge returns the value of a metric of the UpgradeConfig weekly, or -1 if it is absent.
func (w *world) gauge(name string) float64 {
	return w.series(name, "", func(m *dto.Metric) float64 { return m.GetGauge().GetValue() })
}

// counted returns the number of slots with a result.
func (w *world) counted(result string) float64 {
	return w.series("managed_upgrade_schedule_slots_total", result, func(m *dto.Metric) float64 { return m.GetCounter().GetValue() })
}

func (w *world) series(name, result string, value func(*dto.Metric) float64) float64 {
	families, err := w.registry.Gather()
	w.Must(err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == name && labels["name"] == weekly.Name && (result == "" || labels["result"] == result) {
				return value(m)
			}
		}
	}
	return -1
}

func TestSeriesGoWithTheObject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, config())
	w.RunTo(tuesday)
	if got := w.counted(ResultJobCreated); got != 1 {
		t.Errorf("%v slots are counted", got)
	}
	w.Must(w.User.Delete(t.Context(), w.get()))
	w.RunFor(0)
	families, err := w.registry.Gather()
	w.Must(err)
	if len(families) > 0 {
		t.Errorf("series of a deleted object: %v", families)
	}
}
