// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

var (
	selectAll  = &maintenancev1beta1.LabelSelector{}
	selectA    = &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	invalidKey = &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"no key": "a"}}
)

func window(name, start, end string, configs, jobs *maintenancev1beta1.LabelSelector) maintenancev1beta1.UpgradeSuspensionWindow {
	return maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenancev1beta1.Timestamp(start), End: maintenancev1beta1.Timestamp(end), ConfigSelector: configs, JobSelector: jobs,
		},
	}
}

func TestSuspendedBy(t *testing.T) {
	t.Parallel()
	first, last := time.Date(2027, 3, 2, 0, 0, 0, 0, time.UTC), time.Date(2027, 3, 3, 0, 0, 0, 0, time.UTC)
	day := func(name string, configs, jobs *maintenancev1beta1.LabelSelector) maintenancev1beta1.UpgradeSuspensionWindow {
		return window(name, "2027-03-02T01:00:00+01:00", "2027-03-03T00:00:00Z", configs, jobs)
	}
	for name, tc := range map[string]struct {
		windows []maintenancev1beta1.UpgradeSuspensionWindow
		labels  map[string]string
		at      time.Time
		kind    maintenance.Selected
		want    string
	}{
		"no window":                          {at: first},
		"first instant":                      {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectAll, nil)}, at: first, want: "day"},
		"before the first instant":           {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectAll, nil)}, at: first.Add(-1)},
		"last instant":                       {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectAll, nil)}, at: last.Add(-1), want: "day"},
		"after the last instant":             {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectAll, nil)}, at: last},
		"no selector selects none":           {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", nil, selectAll)}, at: first},
		"jobs by their own selector":         {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", nil, selectAll)}, at: first, kind: maintenance.SelectedJobs, want: "day"},
		"configSelector selects no jobs":     {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectAll, nil)}, at: first, kind: maintenance.SelectedJobs},
		"matching labels":                    {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectA, nil)}, labels: map[string]string{"team": "a"}, at: first, want: "day"},
		"other labels":                       {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", selectA, nil)}, labels: map[string]string{"team": "b"}, at: first},
		"invalid selector suspends":          {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("day", invalidKey, nil)}, at: first, want: "day"},
		"invalid time contains nothing":      {windows: []maintenancev1beta1.UpgradeSuspensionWindow{window("day", "yesterday", "2027-03-03T00:00:00Z", selectAll, nil)}, at: first},
		"the window that ends last is named": {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("a", selectAll, nil), window("b", "2027-03-01T00:00:00Z", "2027-04-01T00:00:00Z", selectAll, nil), day("c", selectAll, nil)}, at: first, want: "b"},
		"of equal windows the first by name": {windows: []maintenancev1beta1.UpgradeSuspensionWindow{day("b", selectAll, nil), day("a", selectAll, nil)}, at: first, want: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, suspended := maintenance.SuspendedBy(tc.windows, tc.labels, tc.at, tc.kind)
			if got.Window != tc.want || suspended != (tc.want != "") {
				t.Errorf("suspended: %t by %q, want %q", suspended, got.Window, tc.want)
			}
		})
	}
}

func TestSuspension_String(t *testing.T) {
	t.Parallel()
	s := maintenance.Suspension{Window: "freeze", End: time.Date(2027, 3, 3, 1, 0, 0, 0, time.FixedZone("", 3600))}
	if got, want := s.String(), "UpgradeSuspensionWindow freeze until 2027-03-03T00:00:00Z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Reason = "year\nend"
	if got, want := s.String(), "UpgradeSuspensionWindow freeze until 2027-03-03T00:00:00Z (year end)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
