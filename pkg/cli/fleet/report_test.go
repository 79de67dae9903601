// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
)

func TestReport(t *testing.T) {
	t.Parallel()
	f := newStores(t, "14:32", 3, 120, 400, 800)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", numbers(1, 184)...)
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonClusterVersionFailing, "etcd is degraded", 388)
	f.run(fleetv1alpha1.StatePartialUpgrade, "ClusterUpgraded", "", append(numbers(348, 385), 402, 417)...)
	f.stall(fleetv1alpha1.StepClusterUpgraded, "Working towards 4.20.6: 780 of 900 done (86% complete), waiting on machine-config", 402, 417)
	f.publish(nil)
	s := f.read()
	got := printer().Report(s)
	if got.Verdict != s.Verdict().Text || got.Tone != report.ToneRunning || got.Target != "4.20.6" || len(got.Clusters) != 1323 {
		t.Errorf("%s, %s, %s, %d clusters", got.Verdict, got.Tone, got.Target, len(got.Clusters))
	}
	wantGroups := []report.Group{
		{Name: "All clusters", Text: "184 of 1,323 complete, 40 in flight, 1 failed, 1,098 pending", Complete: 184, Active: 40, Failed: 1, Pending: 1098},
		{Name: "canaries", Text: "3 of 3 complete", Complete: 3},
		{Name: "group 1", Text: "120 of 120 complete", Complete: 120},
		{Name: "group 2", Text: "61 of 400 complete, 40 in flight, 1 failed, 298 pending", Complete: 61, Active: 40, Failed: 1, Pending: 298},
		{Name: "group 3", Text: "0 of 800, waits for group 2", Pending: 800},
	}
	if diff := cmp.Diff(wantGroups, got.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	wantCauses := []report.FleetCause{
		{Tone: report.ToneFailed, Label: "FAILED", Count: 1, Text: "ClusterVersionFailing: etcd is degraded", Clusters: []string{"store-0388"}},
		{Tone: report.ToneWarning, Label: "SLOW", Count: 2, Text: "no progress for 47m: machine-config", Clusters: []string{"store-0402", "store-0417"}},
	}
	if diff := cmp.Diff(wantCauses, got.Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	rows := map[string]report.Cluster{}
	for _, c := range got.Clusters {
		rows[c.Name] = c
	}
	for _, want := range []report.Cluster{
		{Name: "store-0001", State: "Complete", Group: "canary", Reason: "Upgraded", Tone: report.ToneDone, HasRun: true},
		{Name: "store-0388", State: "Failed", Group: "2", Reason: "ClusterVersionFailing", Message: "etcd is degraded", Tone: report.ToneFailed, HasRun: true},
		{Name: "store-1300", State: "NotStarted", Group: "3", Tone: report.ToneNone},
	} {
		if diff := cmp.Diff(want, rows[want.Name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Name, diff)
		}
	}
	if rows["store-0402"].Tone != report.ToneWarning || rows["store-0348"].Tone != report.ToneRunning {
		t.Errorf("a slow cluster: %+v; another one: %+v", rows["store-0402"], rows["store-0348"])
	}
	facts := map[string]string{}
	for _, fact := range got.Facts {
		facts[fact.Name] = fact.Value
	}
	if facts["Slots"] != "40/40" || facts["Failures"] != "1 of 14" || !strings.Contains(facts["Time left"], "184 done") || facts["Order"] != "ProgressivePerGroup" {
		t.Errorf("facts %v", facts)
	}
}

// If the user cannot read the selected clusters, the page says what it lacks.
func TestReport_without_clusters(t *testing.T) {
	t.Parallel()
	f := newStores(t, "14:32", 0, 3)
	f.publish(nil)
	s := f.read()
	s.Unreadable = errors.New("forbidden")
	got := printer().Report(s)
	if len(got.Missing) != 1 || !strings.Contains(got.Missing[0], "forbidden") {
		t.Errorf("missing %q", got.Missing)
	}
	for _, fact := range got.Facts {
		if fact.Name == "Slots" || fact.Name == "Time left" {
			t.Errorf("fact %v, which is unknown", fact)
		}
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	f := newStores(t, "14:32", 0, 3)
	record := history.Record{Attempt: 1, Version: "4.20.6", Phase: history.PhaseUpgrading, Message: "of the record", StartTime: new(metav1.NewTime(f.now))}
	row := report.Cluster{Name: "store-0001", State: "PartialUpgrade", Group: "1", Message: "of the row"}
	for name, tc := range map[string]struct {
		state   string
		edit    func(*fleetv1alpha1.ClusterUpgradeRun)
		phase   history.Phase
		message string
		causes  int
	}{
		"with a record":    {"PartialUpgrade", func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.History = []history.Record{record} }, history.PhaseUpgrading, "of the record", 0},
		"without a record": {"Initialized", func(*fleetv1alpha1.ClusterUpgradeRun) {}, history.PhasePending, "of the row", 0},
		"of another attempt": {"Initialized", func(r *fleetv1alpha1.ClusterUpgradeRun) {
			r.Spec.Attempt, r.Status.History = 2, []history.Record{record}
		}, history.PhasePending, "of the row", 0},
		"refused": {"Failed", func(r *fleetv1alpha1.ClusterUpgradeRun) {
			r.Spec.Outcome = &fleetv1alpha1.Outcome{State: fleetv1alpha1.StateFailed, Reason: "NewerVersionInstalled"}
		}, history.PhaseFailed, "NewerVersionInstalled", 0},
		"slow": {"PartialUpgrade", func(r *fleetv1alpha1.ClusterUpgradeRun) {
			r.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionSlow, Status: metav1.ConditionTrue, Message: "is slow"}}
		}, history.PhasePending, "of the row", 1},
		"no run": {"Complete", nil, history.PhaseUpgraded, "of the row", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := row
			c.State = tc.state
			var run *fleetv1alpha1.ClusterUpgradeRun
			if tc.edit != nil {
				run = &fleetv1alpha1.ClusterUpgradeRun{}
				run.Spec.Attempt, run.Status.Attempt = 1, 1
				tc.edit(run)
			}
			got := Detail(f.upgrade, c, run, f.now)
			if got.Cluster != "store-0001" || got.Record.Phase != tc.phase || got.Record.Message != tc.message || len(got.Causes) != tc.causes || !got.StepsOnly {
				t.Errorf("%+v", got)
			}
		})
	}
}
