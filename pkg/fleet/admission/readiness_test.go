// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

// documented returns the rows of the table of fleets in docs/concepts/conditions.md, by their state.
func documented(t *testing.T) map[string]kstatus.Health {
	t.Helper()
	page, err := os.ReadFile("../../../docs/concepts/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Fleets\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]kstatus.Health{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 6 || strings.HasPrefix(cells[0], "| state") {
			continue
		}
		rows[strings.TrimPrefix(cells[0], "| ")] = kstatus.Health{Ready: cells[1], Reconciling: cells[2], Stalled: cells[3], Status: cells[4]}
	}
	return rows
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	dryRun := upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true })
	waiting, complete := member("a", 0, nil), member("a", 0, run("a", fleetv1alpha1.StateComplete, ""))
	inFlight, failed := member("b", 0, run("b", fleetv1alpha1.StatePartialUpgrade, "")), member("c", 0, run("c", fleetv1alpha1.StateFailed, "PreActionDegraded"))
	checked, blocked := waiting, waiting
	checked.Checked, blocked.Checked = true, true
	blocked.Obstacle = rollout.Stop{Reason: "NotOffered", Message: "why"}
	type fleet struct {
		upgrade *fleetv1beta1.ManagedClustersUpgrade
		stop    string
		members []admission.FleetMember
	}
	one := func(upgrade *fleetv1beta1.ManagedClustersUpgrade, members ...admission.FleetMember) func(...string) []fleet {
		return func(stops ...string) []fleet {
			var all []fleet
			for _, stop := range stops {
				all = append(all, fleet{upgrade, stop, members})
			}
			return all
		}
	}
	states := map[string][]fleet{
		"no cluster has begun, and the window is closed or a dependency is incomplete": one(upgrade(), waiting)("OutsideWindow", "DependencyIncomplete"),
		"clusters are upgraded, or may begin": slices.Concat(one(upgrade(), waiting)(""),
			one(upgrade(), inFlight, waiting)("", "NoFreeSlot", "OutsideWindow", "Held"), one(upgrade(), inFlight, failed)("Finished")),
		"paused, or nothing happens because clusters are held or no cluster is selected": slices.Concat(
			one(upgrade(), waiting)("Paused", "Held"), one(upgrade(), inFlight)("Paused"), one(upgrade())("NoClustersSelected")),
		"no cluster starts without manual action": one(upgrade(), inFlight, waiting)(
			"CanaryFailed", "MaxFailuresExceeded", "CanaryNotSelected", "NoCanary", "CanaryNotAvailable", "RecordsLost", "InvalidStrategy",
			"DependencyMissing", "NoOperatorImage", "Cancelled"),
		"ended, and clusters have failed":  one(upgrade(), complete, failed)("Finished"),
		"complete":                         one(upgrade(), complete)("Finished"),
		"an incomplete dry run":            one(dryRun, waiting)("DryRun"),
		"a dry run that found an obstacle": one(dryRun, blocked)("DryRun"),
		"a dry run that found no obstacle": one(dryRun, checked)("DryRun"),
		"the hub cannot read the clusters": nil, // the controller sets it, see its TestClusters_that_cannot_be_read_are_reported
	}
	rows := documented(t)
	for name, want := range rows {
		fleets, known := states[name]
		if !known {
			t.Errorf("the page has a state without a test: %s", name)
		}
		for _, f := range fleets {
			t.Run(name+" "+f.stop, func(t *testing.T) {
				t.Parallel()
				object := f.upgrade.DeepCopy()
				decision := rollout.Decision{Stopped: rollout.Stop{Reason: f.stop}}
				object.Status = admission.ComputeStatus(&admission.Fleet{Upgrade: object, Now: now}, f.members, decision)
				got, err := kstatus.Of(object)
				if got.Slow = ""; err != nil || got != want {
					t.Errorf("got %+v, %v, want %+v", got, err, want)
				}
			})
		}
	}
	if len(rows) != len(states) {
		t.Errorf("the page has %d states, and %d are tested", len(rows), len(states))
	}
}

// A status that the release before has stored calls a fleet with a slow cluster stalled.
func TestFormerStalledBecomesSlow(t *testing.T) {
	t.Parallel()
	u := upgrade()
	since := metav1.NewTime(now.Add(-1))
	u.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "ClusterUpgraded", LastTransitionTime: since}}
	got := compute(rollout.Plan{}, u, member("a", 0, run("a", fleetv1alpha1.StatePartialUpgrade, "", stalled)))
	for _, c := range got.Conditions {
		if c.Type == fleetv1beta1.ConditionSlow && !c.LastTransitionTime.Equal(&since) || c.Type == "Stalled" {
			t.Errorf("condition %+v", c)
		}
	}
	if len(readiness.WithSlow(got.Conditions)) != len(got.Conditions) {
		t.Error("the present status was taken for a former one")
	}
}
