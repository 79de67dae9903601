// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// run returns a run in a state, with a reason.
func run(name string, state fleetv1alpha1.ClusterUpgradeState, reason string, edits ...func(*fleetv1alpha1.ClusterUpgradeRun)) *fleetv1alpha1.ClusterUpgradeRun {
	r := &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "run"},
		Spec:       fleetv1alpha1.ClusterUpgradeRunSpec{Attempt: 1, AdmissionTime: metav1.NewTime(now.Add(-time.Hour))},
		Status:     fleetv1alpha1.ClusterUpgradeRunStatus{Attempt: 1, State: state, Reason: reason, Message: "about " + reason, Applied: true},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func stalled(r *fleetv1alpha1.ClusterUpgradeRun) {
	r.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionSlow, Status: metav1.ConditionTrue, Reason: "ClusterUpgraded", Message: "ClusterUpgraded started at noon and is slow: waiting on etcd"}}
	r.Status.History = []history.Record{{Conditions: []history.StepCondition{{Type: "ClusterUpgraded", Message: "waiting on etcd"}}}}
}

// step adds a step that started an hour ago.
func step(name string) func(*fleetv1alpha1.ClusterUpgradeRun) {
	return func(r *fleetv1alpha1.ClusterUpgradeRun) {
		r.Status.History = []history.Record{{RequestTime: &metav1.Time{Time: now.Add(-time.Hour)}, Conditions: []history.StepCondition{
			{Type: fleetv1alpha1.StepPreUpgradeActionAvailable, StartTime: &metav1.Time{Time: now}, CompleteTime: &metav1.Time{Time: now}},
			{Type: name, StartTime: &metav1.Time{Time: now.Add(-time.Hour)}},
		}}}
	}
}

func notRequested(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.History[0].RequestTime = nil }

func paused(r *fleetv1alpha1.ClusterUpgradeRun) {
	for i := range r.Status.History[0].Conditions {
		r.Status.History[0].Conditions[i].Reason = engine.ReasonPaused
	}
}

// member returns a selected member, with a run unless that is nil.
func member(name string, group int, r *fleetv1alpha1.ClusterUpgradeRun) admission.FleetMember {
	m := admission.FleetMember{Member: rollout.Member{Name: name, Group: group, State: rollout.NotStarted}}
	if r != nil {
		m.SetRun(r, 1, true)
	}
	return m
}

// compute decides and computes.
func compute(plan rollout.Plan, upgrade *fleetv1beta1.ManagedClustersUpgrade, members ...admission.FleetMember) fleetv1beta1.ManagedClustersUpgradeStatus {
	list := make([]rollout.Member, len(members))
	for i := range members {
		list[i] = members[i].Member
	}
	return admission.ComputeStatus(&admission.Fleet{Upgrade: upgrade, Now: now}, members, rollout.Decide(plan, list, now))
}

func upgrade(edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *fleetv1beta1.ManagedClustersUpgrade {
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores", Generation: 3}}
	u.Spec.Attempt = 1
	for _, edit := range edits {
		edit(u)
	}
	return u
}

// summarize returns a line for each condition: type, status, and reason.
func summarize(s fleetv1beta1.ManagedClustersUpgradeStatus) string {
	var lines []string
	for _, c := range s.Conditions {
		lines = append(lines, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(lines, "\n")
}

func canary(m admission.FleetMember) admission.FleetMember {
	m.Canary = true
	return m
}

func TestCompute_conditions(t *testing.T) {
	t.Parallel()
	const (
		initialized = fleetv1alpha1.StateInitialized
		partial     = fleetv1alpha1.StatePartialUpgrade
		complete    = fleetv1alpha1.StateComplete
		failed      = fleetv1alpha1.StateFailed
	)
	unapplied := func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.Applied = false }
	for _, tt := range []struct {
		name    string
		plan    rollout.Plan
		upgrade *fleetv1beta1.ManagedClustersUpgrade
		members []admission.FleetMember
		want    string
	}{
		{
			name: "nothing is selected",
			want: "Selected=False NoClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False NoClustersSelected\nSlow=False OnTime",
		},
		{
			name:    "nothing has begun",
			members: []admission.FleetMember{member("a", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=True Open\nSlow=False OnTime",
		},
		{
			name:    "admitted and not applied",
			members: []admission.FleetMember{member("a", 0, run("a", initialized, "", unapplied)), member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False NoFreeSlot\nSlow=False OnTime",
		},
		{
			name:    "stalled",
			members: []admission.FleetMember{member("a", 0, run("a", partial, "", stalled)), member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=True ManagedClustersUpgradeInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False NoFreeSlot\nSlow=True ClusterUpgraded",
		},
		{
			name:    "complete",
			members: []admission.FleetMember{member("a", 0, run("a", complete, "", stalled)), member("b", 0, run("b", complete, ""))},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=False ManagedClustersUpgradeComplete\n" +
				"Complete=True ManagedClustersUpgradeComplete\nFailed=False NoFailures\nAdmitting=False Finished\nSlow=False OnTime",
		},
		{
			name:    "canary failed",
			members: []admission.FleetMember{canary(member("a", 0, run("a", failed, "ApplyTimedOut"))), member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersFailed\nFailed=True CanaryFailed\nAdmitting=False CanaryFailed\nSlow=False OnTime",
		},
		{
			name: "canary timed out, and its run has not failed yet",
			members: []admission.FleetMember{
				canary(member("a", 0, run("a", initialized, "", step(fleetv1alpha1.StepUpgradeDelivered)))), member("b", 0, run("b", failed, "ApplyTimedOut")), member("c", 0, nil),
			},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersFailed\nFailed=True ManagedClustersUpgradeFailed\nAdmitting=False CanaryFailed\nSlow=False OnTime",
		},
		{
			name:    "budget exceeded",
			plan:    rollout.Plan{MaxFailures: new(intstr.FromInt32(0))},
			members: []admission.FleetMember{member("a", 0, run("a", failed, "ApplyTimedOut")), member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersFailed\nFailed=True MaxFailuresExceeded\nAdmitting=False MaxFailuresExceeded\nSlow=False OnTime",
		},
		{
			name: "failures are tolerated, and what was applied stays applied",
			upgrade: upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) {
				u.Status.Conditions = []metav1.Condition{{Type: fleetv1beta1.ConditionApplied, Status: metav1.ConditionTrue}, {Type: "Other", Status: metav1.ConditionTrue}}
			}),
			members: []admission.FleetMember{member("a", 0, run("a", failed, "HostedControlPlane", unapplied)), member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=True ManagedClustersUpgradeApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersFailed\nFailed=True ManagedClustersUpgradeFailed\nAdmitting=True Open\nSlow=False OnTime",
		},
		{
			name:    "dry run is not complete until all are checked",
			plan:    rollout.Plan{DryRun: true},
			upgrade: upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true }),
			members: []admission.FleetMember{{Member: rollout.Member{Name: "a", State: rollout.NotStarted}, Preflight: admission.Preflight{Checked: true}}, member("b", 0, nil)},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False DryRun\nSlow=False OnTime\nPreflightPassed=Unknown Checking",
		},
		{
			name:    "dry run finds an obstacle",
			plan:    rollout.Plan{DryRun: true},
			upgrade: upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true }),
			members: []admission.FleetMember{{Member: rollout.Member{Name: "a", State: rollout.NotStarted}, Preflight: admission.Preflight{Checked: true, Obstacle: rollout.Stop{Reason: "NotOffered"}}}},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False DryRun\nSlow=False OnTime\nPreflightPassed=False NotOffered",
		},
		{
			name:    "dry run passes",
			plan:    rollout.Plan{DryRun: true},
			upgrade: upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true }),
			members: []admission.FleetMember{{Member: rollout.Member{Name: "a", State: rollout.NotStarted}, Preflight: admission.Preflight{Checked: true}}},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False DryRun\nSlow=False OnTime\nPreflightPassed=True PreflightPassed",
		},
		{
			name:    "dry run by claims alone does not pass",
			plan:    rollout.Plan{DryRun: true},
			upgrade: upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun, u.Spec.ClaimsOnly = true, true }),
			members: []admission.FleetMember{{Member: rollout.Member{Name: "a", State: rollout.NotStarted}, Preflight: admission.Preflight{Checked: true}}},
			want: "Selected=True ManagedClustersSelected\nApplied=False NothingApplied\nInProgress=False NothingInProgress\n" +
				"Complete=False ClustersPending\nFailed=False NoFailures\nAdmitting=False DryRun\nSlow=False OnTime\nPreflightPassed=Unknown ClaimsOnly",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.upgrade == nil {
				tt.upgrade = upgrade()
			}
			got := compute(tt.plan, tt.upgrade, tt.members...)
			got.Conditions = slices.DeleteFunc(got.Conditions, func(c metav1.Condition) bool { return readiness.IsOwn(c.Type) }) // see TestReadiness
			if diff := cmp.Diff(tt.want, summarize(got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMember_state(t *testing.T) {
	t.Parallel()
	retry := func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt, r.Status.Attempt = 1, 1 }
	cleaning := func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Finalizers = []string{fleetv1alpha1.Finalizer} }
	behind := func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Attempt = 2 }
	refused := func(r *fleetv1alpha1.ClusterUpgradeRun) {
		r.Spec.Outcome = &fleetv1alpha1.Outcome{State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonHostedControlPlane}
		r.Status = fleetv1alpha1.ClusterUpgradeRunStatus{}
	}
	minutes := func(n int) time.Time { return now.Add(time.Duration(n)*time.Minute - time.Hour) }
	for _, tt := range []struct {
		name    string
		run     *fleetv1alpha1.ClusterUpgradeRun
		attempt int32
		want    rollout.Member
	}{
		{"run without a status has begun", run("a", "", ""), 1, rollout.Member{State: rollout.Initialized}},
		{"run that has not started its steps has begun", run("a", fleetv1alpha1.StateNotStarted, ""), 1, rollout.Member{State: rollout.Initialized}},
		{"failure of an earlier attempt is retried", run("a", fleetv1alpha1.StateFailed, "", retry), 2, rollout.Member{State: rollout.NotStarted}},
		{"failure of an earlier attempt that cleans up is retried after that", run("a", fleetv1alpha1.StateFailed, "", cleaning), 2, rollout.Member{State: rollout.NotStarted, CleaningUp: true}},
		{"failure that cleans up holds its slot", run("a", fleetv1alpha1.StateFailed, "", cleaning), 1, rollout.Member{State: rollout.Failed, CleaningUp: true}},
		{"retry whose status is of the earlier attempt has begun", run("a", fleetv1alpha1.StateFailed, "", behind), 2, rollout.Member{State: rollout.Initialized}},
		{"complete run of an earlier attempt stays", run("a", fleetv1alpha1.StateComplete, "", retry), 2, rollout.Member{State: rollout.Complete}},
		{"late success is counted by the budget", run("a", fleetv1alpha1.StateComplete, fleetv1alpha1.ReasonLateSuccess), 1, rollout.Member{State: rollout.Complete, LateSuccess: true}},
		{"refused cluster is outside the budget", run("a", "", "", refused), 1, rollout.Member{State: rollout.Failed, Exempt: true}},
		{"delivery that is not requested", run("a", fleetv1alpha1.StateInitialized, "", step(fleetv1alpha1.StepUpgradeDelivered), notRequested), 1, rollout.Member{State: rollout.Initialized, Deadline: minutes(30)}},
		{"delivery that is paused", run("a", fleetv1alpha1.StateInitialized, "", step(fleetv1alpha1.StepUpgradeDelivered), notRequested, paused), 1, rollout.Member{State: rollout.Initialized}},
		{"deadline of the delivery", run("a", fleetv1alpha1.StateInitialized, "", step(fleetv1alpha1.StepUpgradeDelivered)), 1, rollout.Member{State: rollout.Initialized, Deadline: minutes(30)}},
		{"deadline of the platform", run("a", fleetv1alpha1.StatePartialUpgrade, "", step(fleetv1alpha1.StepClusterUpgraded), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Timeouts.ClusterUpgrade = "95m" }), 1, rollout.Member{State: rollout.PartialUpgrade, Deadline: minutes(95)}},
		{"no deadline of the soak, whose run looks first", run("a", fleetv1alpha1.StatePartialUpgrade, "", step(fleetv1alpha1.StepSoaked), func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Timeouts.Soak = "30m" }), 1, rollout.Member{State: rollout.PartialUpgrade}},
		{"late success of an earlier attempt is retried", run("a", fleetv1alpha1.StateComplete, fleetv1alpha1.ReasonLateSuccess, retry), 2, rollout.Member{State: rollout.NotStarted}},
		{"no deadline of a step without a timeout", run("a", fleetv1alpha1.StatePartialUpgrade, "", step("WorksRemoved")), 1, rollout.Member{State: rollout.PartialUpgrade}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var m admission.FleetMember
			m.SetRun(tt.run, tt.attempt, true)
			tt.want.Name = "a"
			if diff := cmp.Diff(tt.want, m.Member); diff != "" {
				t.Errorf("member (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMember_deselected_keeps_its_mark_and_its_group(t *testing.T) {
	t.Parallel()
	var m admission.FleetMember
	m.SetRun(run("a", fleetv1alpha1.StateComplete, "", func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Spec.Canary, r.Spec.Group = true, 3 }), 1, false)
	if !m.Canary || m.Group != 2 {
		t.Errorf("%+v", m.Member)
	}
}

func TestCompute_actions(t *testing.T) {
	t.Parallel()
	action := func(state fleetv1alpha1.ActionState, applied bool) *fleetv1alpha1.ActionStatus {
		return &fleetv1alpha1.ActionStatus{Applied: applied, State: state}
	}
	with := func(pre, post *fleetv1alpha1.ActionStatus) *fleetv1alpha1.ClusterUpgradeRun {
		return run("a", fleetv1alpha1.StatePartialUpgrade, "", func(r *fleetv1alpha1.ClusterUpgradeRun) {
			r.Status.PreUpgradeAction, r.Status.PostUpgradeAction = pre, post
		})
	}
	u := upgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.PreUpgradeAction, u.Spec.PostUpgradeAction = &fleetv1beta1.UpgradeAction{}, &fleetv1beta1.UpgradeAction{}
	})
	upgraded := with(action(fleetv1alpha1.ActionAvailable, true), action(fleetv1alpha1.ActionProgressing, true))
	upgraded.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{{
		Type: fleetv1alpha1.StepOperatorsUpgraded, Status: metav1.ConditionTrue, CompleteTime: &metav1.Time{Time: now},
	}}}}
	got := compute(rollout.Plan{}, u,
		member("a", 0, with(action("", false), nil)), member("b", 0, with(action("", true), nil)),
		member("c", 0, with(action(fleetv1alpha1.ActionDegraded, true), nil)), member("e", 0, nil),
		member("d", 0, upgraded),
	)
	if got.ClustersSummery.Complete != 1 || got.ClustersSummery.Finishing != 1 || got.ClustersSummery.PartialUpgrade != 3 || got.CompletionTime != nil {
		t.Errorf("%+v", *got.ClustersSummery)
	}
	if diff := cmp.Diff(&fleetv1beta1.ActionSummary{Total: 4, Applied: 3, Available: 1, Progressing: 1, Degraded: 1}, got.PreUpgradeActionSummary); diff != "" {
		t.Errorf("pre-upgrade action (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&fleetv1beta1.ActionSummary{Total: 1, Applied: 1, Progressing: 1}, got.PostUpgradeActionSummary); diff != "" {
		t.Errorf("post-upgrade action (-want +got):\n%s", diff)
	}
	if got := compute(rollout.Plan{}, upgrade(), member("a", 0, with(action("", true), nil))); got.PreUpgradeActionSummary != nil {
		t.Errorf("summary without an action: %+v", got.PreUpgradeActionSummary)
	}
}

func TestCompute_causes_and_groups(t *testing.T) {
	t.Parallel()
	members := []admission.FleetMember{canary(member("c", 1, run("c", fleetv1alpha1.StateComplete, "")))}
	for i, name := range []string{"d", "b", "a", "e"} {
		members = append(members, member(name, i%2*40, run(name, fleetv1alpha1.StateFailed, "ApplyTimedOut",
			func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.Message = "of " + name })))
	}
	held := member("h", 2, nil)
	held.Hold = "audit"
	members = append(members, member("s", 2, run("s", fleetv1alpha1.StatePartialUpgrade, "", stalled)), held)
	members = append(members, member("w", 2, run("w", fleetv1alpha1.StateInitialized, "Paused",
		func(r *fleetv1alpha1.ClusterUpgradeRun) { r.Status.Message = "its ClusterVersion holds it" })))
	got := compute(rollout.Plan{}, upgrade(), members...)
	wantCauses := []fleetv1beta1.Cause{
		{Type: fleetv1beta1.CauseFailed, Reason: "ApplyTimedOut", Message: "of a", Count: 4, Clusters: []string{"a", "b", "d"}},
		{Type: fleetv1beta1.CauseStalled, Reason: "ClusterUpgraded", Message: "waiting on etcd", Count: 1, Clusters: []string{"s"}},
		{Type: fleetv1beta1.CauseBlocked, Reason: "Held", Message: "audit", Count: 2, Clusters: []string{"h", "w"}},
	}
	if diff := cmp.Diff(wantCauses, got.Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	wantGroups := []fleetv1beta1.GroupStatus{
		{Index: 1, ClustersSummary: fleetv1beta1.ClustersSummary{Total: 2, Failed: 2}},
		{Index: 3, ClustersSummary: fleetv1beta1.ClustersSummary{Total: 3, Initialized: 1, PartialUpgrade: 1, Pending: 1}},
		{Index: 41, ClustersSummary: fleetv1beta1.ClustersSummary{Total: 2, Failed: 2}},
	}
	if diff := cmp.Diff(wantGroups, got.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&fleetv1beta1.ClustersSummary{Total: 1, Complete: 1}, got.CanaryClustersSummery); diff != "" {
		t.Errorf("canaries (-want +got):\n%s", diff)
	}
}

func TestCompute_most_frequent_causes_first(t *testing.T) {
	t.Parallel()
	var members []admission.FleetMember
	for i := range 3 {
		members = append(members, member(fmt.Sprint("z", i), 0, run(fmt.Sprint("z", i), fleetv1alpha1.StateFailed, "Often")))
	}
	for i := range 20 {
		members = append(members, member(fmt.Sprint("a", i), 0, run(fmt.Sprint("a", i), fleetv1alpha1.StateFailed, fmt.Sprintf("Once%02d", i))))
	}
	got := compute(rollout.Plan{}, upgrade(), members...).Causes
	if len(got) != fleetv1beta1.MaxCauses || got[0].Reason != "Often" || got[1].Reason != "Once00" || got[9].Reason != "Once08" {
		t.Errorf("%+v", got)
	}
}

func TestCompute_deselected_failure_counts_until_it_is_forgotten(t *testing.T) {
	t.Parallel()
	gone := member("a", 0, run("a", fleetv1alpha1.StateFailed, "ApplyTimedOut"))
	gone.DeselectedSince = now.Add(-time.Hour)
	other := member("b", 0, run("b", fleetv1alpha1.StateComplete, ""))
	got := compute(rollout.Plan{}, upgrade(), gone, other)
	if diff := cmp.Diff(&fleetv1beta1.ClustersSummary{Total: 2, Complete: 1, Failed: 1}, got.ClustersSummery); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	gone.Forget("its disk is broken")
	got = compute(rollout.Plan{}, upgrade(), gone, other)
	if diff := cmp.Diff(&fleetv1beta1.ClustersSummary{Total: 1, Complete: 1}, got.ClustersSummery); diff != "" {
		t.Errorf("clusters without the forgotten one (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]fleetv1beta1.ForgottenFailure{{Cluster: "a", Reason: "its disk is broken"}}, got.ForgottenFailures); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}

func TestCompute_stop_keeps_its_time(t *testing.T) {
	t.Parallel()
	canary := member("a", 0, run("a", fleetv1alpha1.StateFailed, "ApplyTimedOut"))
	canary.Canary = true
	u := upgrade()
	got := compute(rollout.Plan{}, u, canary, member("b", 0, nil))
	if got.Stop == nil || got.Stop.Reason != fleetv1beta1.ReasonCanaryFailed || !got.Stop.Time.Time.Equal(now.Truncate(time.Second)) {
		t.Fatalf("%+v", got.Stop)
	}
	u.Status = got
	u.Status.Stop.Time = metav1.NewTime(now.Add(-time.Hour))
	if got = compute(rollout.Plan{}, u, canary, member("b", 0, nil)); !got.Stop.Time.Equal(&u.Status.Stop.Time) {
		t.Errorf("%+v", got.Stop)
	}
	u.Spec.Attempt = 2
	if got = compute(rollout.Plan{}, u, member("a", 0, nil), member("b", 0, nil)); got.Stop != nil {
		t.Errorf("%+v", got.Stop)
	}
}

func TestCompute_times(t *testing.T) {
	t.Parallel()
	started := now.Add(-time.Hour)
	ended := func(r *fleetv1alpha1.ClusterUpgradeRun) {
		r.Status.CompletionTime = &metav1.Time{Time: now.Add(-time.Minute)}
	}
	u := upgrade()
	got := compute(rollout.Plan{}, u, member("a", 0, run("a", fleetv1alpha1.StateComplete, "", ended)))
	if !got.StartTime.Time.Equal(started) || !got.CompletionTime.Time.Equal(now.Add(-time.Minute)) || got.NextTime != nil {
		t.Errorf("start %s, completion %s, next %s", got.StartTime, got.CompletionTime, got.NextTime)
	}
	u.Status = got
	again := compute(rollout.Plan{}, u, member("a", 0, run("a", fleetv1alpha1.StateComplete, "")))
	if !again.CompletionTime.Equal(got.CompletionTime) || !again.StartTime.Equal(got.StartTime) {
		t.Errorf("times change: start %s, completion %s", again.StartTime, again.CompletionTime)
	}
	// A cluster that joins later is not complete, and the time of the end goes with it.
	got = compute(rollout.Plan{Window: &rollout.Window{Until: now.Add(time.Minute + time.Millisecond)}}, u,
		member("a", 0, run("a", fleetv1alpha1.StateComplete, "", ended)), member("b", 0, nil))
	if got.CompletionTime != nil || !got.NextTime.Time.Equal(now.Add(time.Minute+time.Second)) {
		t.Errorf("completion %s, next %s", got.CompletionTime, got.NextTime)
	}
}

// conditionReason is the pattern that the API server requires of the reason of a condition.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// randomFleet returns members in random states.
func randomFleet(random *rand.Rand, size int, name func(int) string) []admission.FleetMember {
	states := []fleetv1alpha1.ClusterUpgradeState{"", fleetv1alpha1.StateInitialized, fleetv1alpha1.StatePartialUpgrade, fleetv1alpha1.StateComplete, fleetv1alpha1.StateFailed, "Resting"}
	only := random.IntN(3) // all complete, all failed, or mixed
	members := make([]admission.FleetMember, size)
	for i := range members {
		state := states[random.IntN(len(states))]
		switch only {
		case 0:
			state = fleetv1alpha1.StateComplete
		case 1:
			state = fleetv1alpha1.StateFailed
		}
		r := run(name(i), state, fmt.Sprintf("Reason%d", random.IntN(15)))
		r.Status.Message = strings.Repeat("etcd is \n degraded \xff ", random.IntN(40))
		if random.IntN(4) == 0 {
			stalled(r)
		}
		if only == 2 && random.IntN(4) == 0 {
			r = nil
		}
		members[i] = member(name(i), random.IntN(50), r)
		members[i].Canary = random.IntN(10) == 0
		members[i].GroupName = strings.Repeat("g", 1+random.IntN(63))
		if random.IntN(10) == 0 {
			members[i].DeselectedSince = now.Add(-time.Hour)
		}
	}
	return members
}

func TestCompute_properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		members := randomFleet(random, random.IntN(40), func(i int) string { return fmt.Sprintf("store-%04d", i) })
		got := compute(rollout.Plan{}, upgrade(), members...)
		if err := check(got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		shuffled := slices.Clone(members)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(got, compute(rollout.Plan{}, upgrade(), shuffled...)); diff != "" {
			t.Fatalf("seed %d: the order of members matters (-want +got):\n%s", seed, diff)
		}
	}
}

// check returns the violation of an invariant by the status, if there is one.
func check(s fleetv1beta1.ManagedClustersUpgradeStatus) error {
	if err := invariants.Status(&fleetv1beta1.ManagedClustersUpgrade{Status: s}); err != nil {
		return err
	}
	if len(s.Groups) > fleetv1beta1.MaxGroups || len(s.Causes) > fleetv1beta1.MaxCauses {
		return fmt.Errorf("%d groups, %d causes", len(s.Groups), len(s.Causes))
	}
	for _, c := range s.Conditions {
		if !conditionReason.MatchString(c.Reason) || c.Message == "" {
			return fmt.Errorf("condition %+v", c)
		}
	}
	for _, c := range s.Causes {
		if len([]rune(c.Message)) > 256 || c.Reason == "" || len(c.Clusters) > 3 || int(c.Count) < len(c.Clusters) {
			return fmt.Errorf("cause %+v", c)
		}
	}
	return nil
}

func TestCompute_size(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 9))
	members := randomFleet(random, 3500, func(i int) string { return fmt.Sprintf("%04d-%s", i, strings.Repeat("n", 58)) })
	for i := range members {
		if members[i].Run != nil {
			members[i].Run.Status.Reason = strings.Repeat("R", 100) + members[i].Run.Status.Reason
		}
	}
	got := compute(rollout.Plan{}, upgrade(), members...)
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > 9000 { // the spec and the metadata have the rest
		t.Errorf("%d bytes", len(encoded))
	}
	if err := check(got); err != nil {
		t.Error(err)
	}
}

// maxCompute limits the processor time of the status of the fleet for 3,500 clusters.
const maxCompute = 5 * time.Millisecond

func BenchmarkCompute(b *testing.B) {
	random := rand.New(rand.NewPCG(2, 9))
	members := randomFleet(random, 3500, func(i int) string { return fmt.Sprintf("store-%04d", i) })
	pass := func() { compute(rollout.Plan{}, upgrade(), members...) }
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
	fastest := simulation.FastestPass(b, 20, pass)
	b.ReportMetric(float64(fastest.Microseconds())/1000, "best-ms")
	if fastest > maxCompute {
		b.Errorf("the status of the fleet takes %s of processor time, limit %s", fastest, maxCompute)
	}
}
