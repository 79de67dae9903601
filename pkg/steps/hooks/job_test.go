// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func TestJobName_is_unique_and_valid(t *testing.T) {
	t.Parallel()
	hook := hookRef{Name: "notify", UID: "h1"}
	start := Event{Name: v1beta1.EventStart}
	names := map[string]string{}
	for what, name := range map[string]string{
		"one":              jobName("u1", 1, hook, start),
		"another upgrade":  jobName("u2", 1, hook, start),
		"another attempt":  jobName("u1", 2, hook, start),
		"another hook":     jobName("u1", 1, hookRef{Name: "notify", UID: "h2"}, start),
		"another event":    jobName("u1", 1, hook, Event{Name: v1beta1.EventFinish}),
		"a pool":           jobName("u1", 1, hook, Event{Name: v1beta1.EventStart, Pool: "night"}),
		"a long name":      jobName("u1", 1, hookRef{Name: strings.Repeat("a", 253), UID: "h1"}, start),
		"a dotted name":    jobName("u1", 1, hookRef{Name: "a.b", UID: "h1"}, start),
		"a dot at the cut": jobName("u1", 1, hookRef{Name: strings.Repeat("a", 45) + ".b", UID: "h1"}, start),
	} {
		if other, taken := names[name]; taken {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		names[name] = what
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%s: %s: %s", what, name, errs)
		}
	}
	if again := jobName("u1", 1, hook, start); names[again] != "one" {
		t.Errorf("the name differs: %s", again)
	}
}

func TestItemName_is_bounded_and_unique(t *testing.T) {
	t.Parallel()
	event := Event{Name: v1beta1.EventMachineConfigPoolUnpause, Pool: strings.Repeat("p", 200)}
	one, other := event.itemName(strings.Repeat("h", 200)+"1"), event.itemName(strings.Repeat("h", 200)+"2")
	if one == other || len(one) != maxItemName || len(other) != maxItemName {
		t.Errorf("%d %s\n%d %s", len(one), one, len(other), other)
	}
	if got := (Event{Name: v1beta1.EventStart}).itemName("notify"); got != "Start/notify" {
		t.Error(got)
	}
}

func TestJobRecorded(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(noon)
	record := func(attempt int32, ended, stepEnded bool, items ...history.StepItem) history.Record {
		r := history.Record{Attempt: attempt, UpgradeAt: &at, StartTime: &at, Conditions: []history.StepCondition{{Type: "S", Items: items}}}
		if ended {
			r.CompleteTime = &at
		}
		if stepEnded {
			r.Conditions[0].CompleteTime = &at
		}
		return r
	}
	succeeded := history.StepItem{Name: "Start/a", Status: "Succeeded"}
	for name, tc := range map[string]struct {
		records []history.Record
		attempt string
		want    bool
	}{
		"no record yet":              {},
		"another attempt is newer":   {records: []history.Record{record(2, false, false)}, want: true},
		"an older attempt only":      {records: []history.Record{record(1, true, true)}, attempt: "2"},
		"attempt has ended":          {records: []history.Record{record(1, true, true)}, want: true},
		"step runs":                  {records: []history.Record{record(1, false, false, history.StepItem{Name: "Start/a", Status: "Running"})}},
		"step runs, result recorded": {records: []history.Record{record(1, false, false, succeeded)}},
		"step has ended":             {records: []history.Record{record(1, false, true, succeeded)}, want: true},
		"step has ended, no result":  {records: []history.Record{record(1, false, true, history.StepItem{Name: "Start/a", Status: "Running"})}},
		"another step has ended":     {records: []history.Record{record(1, false, true, history.StepItem{Name: "Start/b", Status: "Succeeded"})}},
		"event of a pool has ended":  {records: []history.Record{record(1, false, true, history.StepItem{Name: "Start/pool", Status: "Completed"})}, want: true},
		"label was changed":          {attempt: "x", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.attempt == "" {
				tc.attempt = "1"
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{labelAttempt: tc.attempt}, Annotations: map[string]string{annotationItem: "Start/a", annotationEvent: "Start/pool"},
			}}
			if got := JobRecorded(tc.records, job); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
