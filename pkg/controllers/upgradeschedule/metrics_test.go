// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"testing"
)

// gauge returns the value of a series of the UpgradeConfig weekly; -1 if there is none.
func (w *world) gauge(name string) float64 { return w.series(name, "") }

// counted returns the number of slots with a result.
func (w *world) counted(result string) float64 { return w.series("schedule_slots_total", result) }

func (w *world) series(name, result string) float64 {
	for _, s := range w.Series() {
		if s.Name == name && s.Labels["name"] == weekly.Name && s.Labels["result"] == result {
			return s.Value
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
	w.Delete(w.get())
	w.RunFor(0)
	if series := w.Series(); len(series) > 0 {
		t.Errorf("series of a deleted object: %v", series)
	}
}
