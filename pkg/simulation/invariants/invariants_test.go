// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package invariants_test

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

type (
	upgradeEdit = func(*fleetv1beta1.ManagedClustersUpgrade)
	runEdit     = func(*fleetv1alpha1.ClusterUpgradeRun)
)

// counted sets the counters of initialized, partialUpgrade, complete, failed, and pending clusters.
func counted(i, p, c, f, n int32) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		sum := fleetv1beta1.ClustersSummary{Total: i + p + c + f + n, Initialized: i, PartialUpgrade: p, Complete: c, Failed: f, Pending: n}
		u.Status.ClustersSummery, u.Status.CanaryClustersSummery = &sum, &fleetv1beta1.ClustersSummary{}
		u.Status.Groups = []fleetv1beta1.GroupStatus{{ClustersSummary: sum}}
		for name, is := range map[string]bool{
			fleetv1beta1.ConditionSelected: sum.Total > 0, fleetv1beta1.ConditionInProgress: p > 0, fleetv1beta1.ConditionFailed: f > 0,
			fleetv1beta1.ConditionComplete: sum.Total > 0 && c == sum.Total,
		} {
			set(u, name, is, "Test")
		}
		u.Status.CompletionTime = nil
		if sum.Total > 0 && c == sum.Total {
			u.Status.CompletionTime = &metav1.Time{}
		}
	}
}

func set(u *fleetv1beta1.ManagedClustersUpgrade, name string, is bool, reason string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&u.Status.Conditions, metav1.Condition{Type: name, Status: status, Reason: reason})
}

func admitting(reason string) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		set(u, fleetv1beta1.ConditionAdmitting, reason == fleetv1beta1.ReasonOpen, reason)
	}
}

func isTrue(name string) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) { set(u, name, true, "Test") }
}

func forgotten(annotation string) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Annotations = map[string]string{fleetv1beta1.ForgetFailureAnnotation: annotation}
	}
}

func stopped(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Status.Stop = &fleetv1beta1.StopStatus{Reason: fleetv1beta1.ReasonCanaryFailed}
}

func late(r *fleetv1alpha1.ClusterUpgradeRun) {
	state("Complete")(r)
	r.Status.Reason = fleetv1alpha1.ReasonLateSuccess
}

func attempt(n int32) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.Attempt = n }
}

func slots(n intstr.IntOrString) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.UpgradeStrategy.MaxConcurrency = &n }
}

func all(edits ...upgradeEdit) upgradeEdit {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		for _, edit := range edits {
			edit(u)
		}
	}
}

func state(s fleetv1alpha1.ClusterUpgradeState) runEdit {
	return func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.State, r.Status.Attempt = s, r.Spec.Attempt }
}

// began adds a step that has started. If status is not empty, the step is complete.
func began(name string, status metav1.ConditionStatus) runEdit {
	return func(r *fleetv1alpha1.ClusterUpgradeRun) {
		c := history.StepCondition{Type: name, Status: status, StartTime: &metav1.Time{}}
		if status != "" {
			c.CompleteTime = &metav1.Time{}
		}
		if len(r.Status.History) == 0 {
			r.Status.History = make([]history.Record, 1)
		}
		r.Status.History[0].Conditions = append(r.Status.History[0].Conditions, c)
	}
}

// TestFleet stores several upgrades and runs in order. The last one must violate the invariant
// named by want, if any.
func TestFleet(t *testing.T) {
	t.Parallel()
	const open = fleetv1beta1.ReasonOpen
	four := intstr.FromInt32(4)
	for name, tc := range map[string]struct {
		upgrades []upgradeEdit
		runs     []runEdit
		gone     bool // the first run is deleted before the second one is stored
		want     string
	}{
		"a rollout":                    {upgrades: []upgradeEdit{counted(0, 0, 0, 0, 2), counted(1, 0, 0, 0, 1), counted(0, 1, 0, 0, 1), counted(0, 0, 1, 0, 1), counted(0, 0, 2, 0, 0)}},
		"states do not sum":            {upgrades: []upgradeEdit{all(counted(1, 0, 0, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.ClustersSummery.Total++ })}, want: "sum to the total"},
		"states of a group do not sum": {upgrades: []upgradeEdit{all(counted(1, 0, 0, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.Groups[0].Pending++ })}, want: "sum to the total"},
		"a group is missing":           {upgrades: []upgradeEdit{all(counted(1, 0, 0, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.Groups = nil })}, want: "the canaries and the groups sum"},
		"Complete and Failed":          {upgrades: []upgradeEdit{all(counted(0, 0, 1, 1, 0), isTrue(fleetv1beta1.ConditionComplete))}, want: "condition Complete is True"},
		"InProgress without a cluster": {upgrades: []upgradeEdit{all(counted(1, 0, 0, 0, 1), isTrue(fleetv1beta1.ConditionInProgress))}, want: "condition InProgress is True: true"},
		"Failed without a failure":     {upgrades: []upgradeEdit{all(counted(0, 0, 1, 0, 1), isTrue(fleetv1beta1.ConditionFailed))}, want: "condition Failed is True: true"},
		"Selected without a cluster":   {upgrades: []upgradeEdit{all(counted(0, 0, 0, 0, 0), isTrue(fleetv1beta1.ConditionSelected))}, want: "condition Selected is True: true"},
		"completion time too early":    {upgrades: []upgradeEdit{all(counted(0, 0, 1, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.CompletionTime = &metav1.Time{} })}, want: "with completion time"},
		"large object":                 {upgrades: []upgradeEdit{all(counted(0, 0, 0, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Name = strings.Repeat("n", 10_000) })}, want: "bytes"},

		"too many by default":       {upgrades: []upgradeEdit{counted(1, 1, 0, 0, 1)}, want: "2 clusters are in flight, after 0, and the limit is 1"},
		"too many":                  {upgrades: []upgradeEdit{all(slots(four), counted(2, 2, 0, 0, 1)), all(slots(four), counted(2, 3, 0, 0, 0))}, want: "the limit is 4"},
		"limit that was lowered":    {upgrades: []upgradeEdit{all(slots(four), counted(2, 2, 0, 0, 1)), counted(0, 4, 0, 0, 1), counted(0, 3, 1, 0, 1)}},
		"too many after it":         {upgrades: []upgradeEdit{all(slots(four), counted(2, 2, 0, 0, 2)), counted(0, 3, 1, 0, 2), counted(1, 3, 1, 0, 1)}, want: "4 clusters are in flight, after 3, and the limit is 1"},
		"percentage rounds up":      {upgrades: []upgradeEdit{all(slots(intstr.FromString("34%")), counted(2, 0, 0, 0, 1))}},
		"too many for a percentage": {upgrades: []upgradeEdit{all(slots(intstr.FromString("34%")), counted(3, 0, 0, 0, 0))}, want: "the limit is 2"},
		"all at once": {upgrades: []upgradeEdit{all(func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.UpgradeStrategy.RolloutType = fleetv1beta1.RolloutAll
		}, counted(9, 0, 0, 0, 0))}},
		"status that is behind":       {upgrades: []upgradeEdit{all(counted(2, 0, 0, 0, 0), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Generation++ })}},
		"admission after a stop":      {upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), admitting(fleetv1beta1.ReasonCanaryFailed)), all(counted(1, 0, 0, 1, 0), admitting(fleetv1beta1.ReasonCanaryFailed))}, want: "1 clusters had begun when the rollout had stopped, and 2 have"},
		"admission after a raise":     {upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), admitting(fleetv1beta1.ReasonMaxFailuresExceeded)), all(counted(1, 0, 0, 1, 0), admitting(open))}},
		"complete upgrade goes on":    {upgrades: []upgradeEdit{counted(0, 0, 2, 0, 0), counted(1, 0, 2, 0, 0)}, want: "the upgrade was complete with"},
		"complete cluster is dropped": {upgrades: []upgradeEdit{counted(0, 0, 2, 0, 1), counted(0, 0, 1, 0, 1)}, want: "1 clusters are complete, and 2 were"},
		"Applied is taken back": {upgrades: []upgradeEdit{all(counted(1, 0, 0, 0, 1), isTrue(fleetv1beta1.ConditionApplied)), all(counted(1, 0, 0, 0, 1), func(u *fleetv1beta1.ManagedClustersUpgrade) {
			set(u, fleetv1beta1.ConditionApplied, false, "Test")
		})}, want: "Applied was True"},
		"begun cluster is dropped":   {runs: []runEdit{state("PartialUpgrade")}, upgrades: []upgradeEdit{counted(0, 0, 0, 0, 0)}, want: "0 clusters are counted as begun, and 1 have begun"},
		"begun cluster is pending":   {runs: []runEdit{state("PartialUpgrade")}, upgrades: []upgradeEdit{counted(0, 0, 0, 0, 2)}, want: "0 clusters are counted as begun, and 1 have begun"},
		"hub that cannot count":      {runs: []runEdit{state("PartialUpgrade")}, upgrades: []upgradeEdit{all(counted(0, 0, 0, 0, 2), admitting(fleetv1beta1.ReasonCannotObserve))}},
		"run after the status":       {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) { r.ResourceVersion = "10" }}, upgrades: []upgradeEdit{counted(0, 0, 0, 0, 2)}},
		"failed cluster is dropped":  {runs: []runEdit{state("Failed")}, upgrades: []upgradeEdit{counted(0, 0, 0, 0, 0)}, want: "0 clusters are counted as begun, and 1 have begun"},
		"forgotten failure":          {runs: []runEdit{state("Failed")}, upgrades: []upgradeEdit{all(counted(0, 0, 0, 0, 0), forgotten("c1=hardware"))}},
		"stop that is lifted":        {upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), stopped), counted(0, 0, 0, 1, 1)}, want: "goes on in the same attempt"},
		"stop until the attempt":     {upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), stopped), all(counted(0, 0, 0, 0, 2), attempt(2))}},
		"stop and typing error":      {runs: []runEdit{state("Failed")}, upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), stopped), all(counted(0, 0, 0, 1, 1), forgotten("c9=hardware"))}, want: "goes on in the same attempt"},
		"stop that is decided again": {runs: []runEdit{state("Failed")}, upgrades: []upgradeEdit{all(counted(0, 0, 0, 1, 1), stopped), all(counted(1, 0, 0, 0, 0), forgotten("c1=hardware"))}},
		"failure is forgotten":       {upgrades: []upgradeEdit{counted(0, 0, 0, 1, 1), counted(0, 0, 0, 0, 2)}, want: "0 clusters have failed, and 1 had"},
		"failure departs": {upgrades: []upgradeEdit{counted(0, 0, 0, 1, 1), all(counted(0, 0, 0, 0, 1), isTrue(fleetv1beta1.ConditionFailed), func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Status.Departed = []fleetv1beta1.DepartedClusters{{Index: 1, Failed: 1}}
		})}},
		"canary that waits":         {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.AdmissionTime = metav1.Time{} }}, upgrades: []upgradeEdit{counted(0, 0, 0, 0, 2)}},
		"run that was deleted":      {runs: []runEdit{state("Complete"), state("")}, gone: true, upgrades: []upgradeEdit{counted(0, 0, 1, 0, 1), counted(1, 0, 0, 0, 1)}},
		"upgrade that is deleted":   {runs: []runEdit{state("Complete")}, upgrades: []upgradeEdit{all(counted(0, 0, 0, 0, 0), admitting(fleetv1beta1.ReasonDeleting))}},
		"two runs":                  {runs: []runEdit{state(""), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.UID = "2" }}, want: "cluster c1 has a second run"},
		"a retry":                   {runs: []runEdit{state("Failed"), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }}},
		"a retry without a failure": {runs: []runEdit{state("PartialUpgrade"), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }}, want: "begins attempt 2"},
		"a retry after completion":  {runs: []runEdit{state("Complete"), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }}, want: "begins attempt 2"},
		"complete becomes a canary": {runs: []runEdit{state("Complete"), func(r *fleetv1alpha1.ClusterUpgradeRun) {
			r.Spec.Attempt, r.Spec.Canary, r.Spec.AdmissionTime = 2, true, metav1.Time{}
		}}, upgrades: []upgradeEdit{counted(0, 0, 1, 0, 1), all(counted(0, 0, 0, 0, 2), attempt(2))}},
		"an attempt goes back":    {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }, func(*fleetv1alpha1.ClusterUpgradeRun) {}}, want: "begins attempt 1"},
		"a state goes back":       {runs: []runEdit{state("PartialUpgrade"), state("Initialized")}, want: "was PartialUpgrade, and is Initialized"},
		"Complete becomes Failed": {runs: []runEdit{state("Complete"), state("Failed")}, want: "was Complete, and is Failed"},
		"Failed becomes Complete": {runs: []runEdit{state("Failed"), state("Complete")}, want: "was Failed, and is Complete"},
		"late success":            {runs: []runEdit{state("Failed"), late}},
		"late success is retried": {runs: []runEdit{state("Failed"), late, func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }}, upgrades: []upgradeEdit{counted(0, 0, 1, 0, 1), all(counted(1, 0, 0, 0, 1), attempt(2))}},
		"late success is dropped": {runs: []runEdit{state("Failed"), late}, upgrades: []upgradeEdit{counted(0, 0, 1, 0, 1), counted(1, 0, 0, 0, 1)}, want: "0 clusters are complete, and 1 were"},
		"steps in order": {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) {
			began("PreUpgradeActionAvailable", "True")(r)
			began("UpgradeDelivered", "")(r)
		}}},
		"upgrade before its action": {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) {
			began("PreUpgradeActionAvailable", "")(r)
			began("UpgradeDelivered", "")(r)
		}}, want: "UpgradeDelivered began before PreUpgradeActionAvailable had succeeded"},
		"upgrade after its failure": {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) {
			began("PreUpgradeActionAvailable", "False")(r)
			began("UpgradeDelivered", "")(r)
		}}, want: "UpgradeDelivered began before PreUpgradeActionAvailable had succeeded"},
		"operators without platform": {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) {
			began("PreUpgradeActionAvailable", "True")(r)
			began("UpgradeDelivered", "True")(r)
			began("OperatorsUpgraded", "")(r)
		}}, want: "OperatorsUpgraded began before ClusterUpgraded had succeeded"},
		"Complete without success": {runs: []runEdit{func(r *fleetv1alpha1.ClusterUpgradeRun) {
			state("Complete")(r)
			r.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse}}
		}}, want: "condition Succeeded is the opposite"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fleet invariants.Fleet
			var errs []error
			for i, edit := range tc.runs {
				run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", UID: "1", ResourceVersion: "8"}}
				run.Spec.ManagedClustersUpgrade.UID, run.Spec.Attempt, run.Spec.AdmissionTime = "u", 1, metav1.Unix(1, 0)
				edit(run)
				errs = append(errs, fleet.Run(run))
				if tc.gone && i == 0 {
					fleet.RunDeleted(run)
				}
			}
			for _, edit := range tc.upgrades {
				upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "9"}}
				edit(upgrade)
				errs = append(errs, fleet.Upgrade(upgrade))
			}
			for i, err := range errs {
				switch last := i == len(errs)-1; {
				case err == nil && (!last || tc.want == ""):
				case err == nil:
					t.Errorf("nothing is violated, want %q", tc.want)
				case !last || tc.want == "" || !strings.Contains(err.Error(), tc.want):
					t.Errorf("object %d of %d: %v, want %q", i+1, len(errs), err, tc.want)
				}
			}
		})
	}
}
