// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

func TestScheduleMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.NewSchedules(registry, "JobCreated", "Missed")
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, registry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	kind := schema.GroupKind{Group: "g", Kind: "K"}
	m.AddSlots(kind, "a", "b", "Missed", 1)
	want("without a schedule")
	s := metrics.Schedule{Kind: kind, Namespace: "a", Name: "b", Accepted: true, Next: time.Unix(3, 0)}
	m.SetSchedule(s)
	m.AddSlots(kind, "a", "b", "Missed", 2)
	const labels = "{kind=K.g,name=b,namespace=a"
	want("at first",
		"schedule_accepted"+labels+"} 1",
		"schedule_next_timestamp_seconds"+labels+"} 3",
		"schedule_slots_total"+labels+",result=JobCreated} 0",
		"schedule_slots_total"+labels+",result=Missed} 2",
		"schedule_suspended"+labels+"} 0")
	if problems, err := promlint.NewWithMetricFamilies(gather(t, registry)).Lint(); len(problems) > 0 || err != nil {
		t.Errorf("promlint: %v %v", problems, err)
	}
	s.Next, s.Suspended, s.LastSlot, s.LastResult = time.Time{}, true, time.Unix(2, 0), "Missed"
	m.SetSchedule(s)
	want("while it is suspended",
		"schedule_accepted"+labels+"} 1",
		"schedule_last_slot_timestamp_seconds"+labels+",result=Missed} 2",
		"schedule_slots_total"+labels+",result=JobCreated} 0",
		"schedule_slots_total"+labels+",result=Missed} 2",
		"schedule_suspended"+labels+"} 1")
	m.DeleteSchedule(kind, "a", "b")
	want("once it is deleted")
	if _, err := metrics.NewSchedules(registry); err == nil {
		t.Error("registering twice is no error")
	}
}
