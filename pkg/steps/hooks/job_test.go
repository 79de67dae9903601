// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func TestJobName_is_unique_and_valid(t *testing.T) {
	t.Parallel()
	hook := hookRef{Name: "notify", UID: "h1"}
	start := Event{Name: maintenancev1beta1.EventStart}
	names := map[string]string{}
	for what, name := range map[string]string{
		"one":              jobName("u1", 1, hook, start),
		"another upgrade":  jobName("u2", 1, hook, start),
		"another attempt":  jobName("u1", 2, hook, start),
		"another hook":     jobName("u1", 1, hookRef{Name: "notify", UID: "h2"}, start),
		"another event":    jobName("u1", 1, hook, Event{Name: maintenancev1beta1.EventFinish}),
		"a pool":           jobName("u1", 1, hook, Event{Name: maintenancev1beta1.EventStart, Pool: "night"}),
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
	event := Event{Name: maintenancev1beta1.EventMachineConfigPoolUnpause, Pool: strings.Repeat("p", 200)}
	one, other := event.itemName(strings.Repeat("h", 200)+"1"), event.itemName(strings.Repeat("h", 200)+"2")
	if one == other || len(one) != maxItemName || len(other) != maxItemName {
		t.Errorf("%d %s\n%d %s", len(one), one, len(other), other)
	}
	if got := (Event{Name: maintenancev1beta1.EventStart}).itemName("notify"); got != "Start/notify" {
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
		unknown bool
	}{
		"no record yet":              {unknown: true},
		"another attempt is newer":   {records: []history.Record{record(2, false, false)}, want: true, unknown: true},
		"an older attempt only":      {records: []history.Record{record(1, true, true)}, attempt: "2", unknown: true},
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
				Labels:      map[string]string{labelAttempt: tc.attempt, "managedupgrade.appuio.io/upgradejob-uid": "1"},
				Annotations: map[string]string{"managedupgrade.appuio.io/upgradejob": "job", annotationItem: "Start/a", annotationEvent: "Start/pool"},
			}}
			owner := OwnerOf(job)
			if owner.Name != "job" || owner.UID != "1" || owner.Kind != "UpgradeJob" {
				t.Errorf("the owner is %+v", owner)
			}
			upgrade := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{maintenancev1beta1.Finalizer}}}
			upgrade.Status.History = tc.records
			if got, known := JobRecorded(owner, upgrade, job); got != tc.want || known == tc.unknown {
				t.Errorf("got %t, known %t", got, known)
			}
		})
	}
}

// A Job belongs to the event only if the UpgradeJob controls it, because any client may set labels
// and annotations.
func TestIsOurs(t *testing.T) {
	t.Parallel()
	e := &eventRun{
		owner: maintenance.Owner{OwnerKind: maintenance.JobOwners(), Namespace: "a", Name: "job", UID: "1"},
		event: Event{Name: maintenancev1beta1.EventStart},
	}
	for name, tc := range map[string]struct {
		uid        types.UID
		controller bool
		want       bool
	}{
		"controlled by the UpgradeJob":    {"1", true, true},
		"owned by it":                     {"1", false, false},
		"controlled by one of its name":   {"2", true, false},
		"without an owner, as labels say": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Labels: e.jobLabels(), Annotations: map[string]string{annotationEvent: e.event.key()}}}
			if tc.uid != "" {
				job.OwnerReferences = []metav1.OwnerReference{{Kind: "UpgradeJob", Name: "job", UID: tc.uid, Controller: &tc.controller}}
			}
			if got := e.isOurs(job); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
