// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestAlert_Weight(t *testing.T) {
	t.Parallel()
	const ignored, noted, risk, blocks = clusterstate.AlertIgnored, clusterstate.AlertNoted, clusterstate.AlertRisk, clusterstate.AlertBlocks
	for _, tc := range []struct {
		name, severity string
		pending        bool
		label          string
		want           clusterstate.AlertWeight
	}{
		{"Any", "critical", false, "", blocks},
		{"Any", "critical", true, "", ignored},
		{"Any", "warning", false, "", noted},
		{"Any", "info", false, "", ignored},
		{"Any", "", false, "", ignored},
		{"Any", "info", false, "true", risk},
		{"Any", "info", false, "false", ignored},
		{"Any", "critical", false, "true", blocks},
		{"KubeContainerWaiting", "warning", false, "", risk},
		{"KubeNodeNotReady", "warning", false, "", risk},
		{"KubeletDown", "warning", false, "", risk},
		{"VMCannotBeEvicted", "warning", false, "", risk},
		{"VirtHandlerDaemonSetRolloutFailing", "warning", false, "", risk},
		{"PodDisruptionBudgetAtLimit", "warning", false, "", risk},
		{"ManagedUpgradeStalled", "critical", false, "true", ignored},
	} {
		alert := clusterstate.Alert{Name: tc.name, Severity: tc.severity, Firing: !tc.pending, Labels: map[string]string{"openShiftUpdatePrecheck": tc.label}}
		if got := alert.Weight(); got != tc.want {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
}

func TestAlert_ConcernsUpdate(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		alert clusterstate.Alert
		began time.Time
		want  bool
	}{
		"since the update":             {clusterstate.Alert{Severity: "warning", Firing: true, Since: began}, began, true},
		"from before":                  {clusterstate.Alert{Severity: "warning", Firing: true, Since: began.Add(-time.Second)}, began, false},
		"at an unknown time":           {clusterstate.Alert{Severity: "critical", Firing: true}, began, true},
		"of an update of unknown time": {clusterstate.Alert{Severity: "critical", Firing: true, Since: began}, time.Time{}, true},
		"a budget from before":         {clusterstate.Alert{Name: "PodDisruptionBudgetLimit", Severity: "critical", Firing: true, Since: began.Add(-time.Hour)}, began, true},
		"pending":                      {clusterstate.Alert{Severity: "critical", Since: began}, began, false},
		"of severity info":             {clusterstate.Alert{Severity: "info", Firing: true, Since: began, Labels: map[string]string{"openShiftUpdatePrecheck": "true"}}, began, false},
		"of the operator":              {clusterstate.Alert{Name: clusterstate.OwnAlerts + "X", Severity: "critical", Firing: true, Since: began}, began, false},
	} {
		if got := tc.alert.ConcernsUpdate(tc.began); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestClusterOperator_states(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		available, degraded     string
		isUnavailable, isBroken bool
		unreported              string
	}{
		{"True", "False", false, false, ""},
		{"False", "False", true, false, ""},
		{"Unknown", "False", true, false, ""},
		{"True", "True", false, true, ""},
		{"True", "Unknown", false, true, ""},
		{"False", "True", true, true, ""},
		{"", "False", false, false, "Available"},
		{"True", "", false, false, "Degraded"},
		{"", "", false, false, "Available Degraded"},
	} {
		o := clusterstate.ClusterOperator{Available: clusterstate.Condition{Status: tc.available}, Degraded: clusterstate.Condition{Status: tc.degraded}}
		if o.IsUnavailable() != tc.isUnavailable || o.IsDegraded() != tc.isBroken || strings.Join(o.Unreported(), " ") != tc.unreported {
			t.Errorf("%+v: got %t, %t, %v", tc, o.IsUnavailable(), o.IsDegraded(), o.Unreported())
		}
	}
	for _, tc := range []struct {
		has, asked string
		want       clusterstate.Answer
	}{
		{"4.4.6", "4.4.6", clusterstate.Yes},
		{"4.4.5", "4.4.6", clusterstate.No},
		{"", "4.4.6", clusterstate.Unknown},
		{"4.4.6", "", clusterstate.Unknown},
		{"", "", clusterstate.Unknown},
	} {
		if got := (clusterstate.ClusterOperator{Version: tc.has}).HasRelease(tc.asked); got != tc.want {
			t.Errorf("%+v: got %d", tc, got)
		}
	}
}

func TestVersion_ReleaseOperators(t *testing.T) {
	t.Parallel()
	version := clusterstate.Version{Updates: []clusterstate.Update{{Release: clusterstate.Release{Version: "4.4.6"}}}}
	annotated, reporting, other := clusterstate.ClusterOperator{Name: "a", InRelease: true}, clusterstate.ClusterOperator{Name: "r", Version: "4.4.6"}, clusterstate.ClusterOperator{Name: "o", Version: "1"}
	for name, tc := range map[string]struct {
		all   []clusterstate.ClusterOperator
		want  string
		known bool
	}{
		"some":       {[]clusterstate.ClusterOperator{annotated, other, reporting}, "ar", true},
		"none known": {[]clusterstate.ClusterOperator{other}, "o", false},
		"none":       {nil, "", true},
	} {
		operators, known := version.ReleaseOperators(tc.all)
		var names []string
		for _, o := range operators {
			names = append(names, o.Name)
		}
		if strings.Join(names, "") != tc.want || known != tc.known {
			t.Errorf("%s: got %v, %t", name, names, known)
		}
	}
}

func TestVersion_MayLeaveMinor(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]clusterstate.Answer{"": clusterstate.Yes, "True": clusterstate.Yes, "False": clusterstate.No, "Unknown": clusterstate.Unknown} {
		if got := (clusterstate.Version{Upgradeable: clusterstate.Condition{Status: status}}).MayLeaveMinor(); got != want {
			t.Errorf("%q: got %d", status, got)
		}
	}
}

func TestPDB_EvictionBlock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pdb  clusterstate.PDB
		want clusterstate.EvictionBlock
	}{
		"allows":               {clusterstate.PDB{Observed: true}, clusterstate.NotBlocked},
		"not observed":         {clusterstate.PDB{SyncError: "no scale", BlocksEviction: true}, clusterstate.BlockedUnobserved},
		"cannot be computed":   {clusterstate.PDB{Observed: true, SyncError: "no scale", BlocksEviction: true}, clusterstate.BlockedBySyncError},
		"allows no disruption": {clusterstate.PDB{Observed: true, BlocksEviction: true}, clusterstate.BlockedByCount},
	} {
		if got := tc.pdb.EvictionBlock(); got != tc.want {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

func TestPool_Degraded_sums_up(t *testing.T) {
	t.Parallel()
	condition := func(kind, reason, message string, status corev1.ConditionStatus) mcfgv1.MachineConfigPoolCondition {
		return mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolConditionType(kind), Status: status, Reason: reason, Message: message}
	}
	for name, tc := range map[string]struct {
		conditions []mcfgv1.MachineConfigPoolCondition
		want       clusterstate.Condition
	}{
		"none": {nil, clusterstate.Condition{}},
		"own message": {[]mcfgv1.MachineConfigPoolCondition{
			condition("Degraded", "R", "sum", corev1.ConditionTrue), condition("NodeDegraded", "N", "node", corev1.ConditionTrue),
		}, clusterstate.Condition{Status: "True", Reason: "R", Message: "sum"}},
		"not degraded": {[]mcfgv1.MachineConfigPoolCondition{
			condition("Degraded", "", "", corev1.ConditionFalse), condition("NodeDegraded", "N", "node", corev1.ConditionTrue),
		}, clusterstate.Condition{Status: "False"}},
		"parts": {[]mcfgv1.MachineConfigPoolCondition{
			condition("Degraded", "", "", corev1.ConditionTrue), condition("RenderDegraded", "", "", corev1.ConditionFalse), condition("Updating", "U", "u", corev1.ConditionTrue),
			condition("NodeDegraded", "1 nodes", "disk", corev1.ConditionTrue), condition("BuildDegraded", "Push", "", corev1.ConditionTrue), condition("PinnedImageSetsDegraded", "", "", corev1.ConditionTrue),
		}, clusterstate.Condition{Status: "True", Reason: "1 nodes", Message: "disk; Push; PinnedImageSetsDegraded"}},
	} {
		pool := &mcfgv1.MachineConfigPool{}
		pool.Status.Conditions = tc.conditions
		if diff := cmp.Diff(tc.want, clusterstate.NewPool(pool).Degraded); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDrainedPod_Hold(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deadlines := clusterstate.NewDrainDeadlines(noon, time.Hour, 2*time.Hour)
	deleted := func(p clusterstate.DrainedPod) clusterstate.DrainedPod {
		p.TerminationDeadline = noon.Add(90 * time.Minute)
		return p
	}
	ready := clusterstate.DrainedPod{NodeReady: true}
	with := func(change func(*clusterstate.DrainedPod)) clusterstate.DrainedPod {
		p := ready
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		pod    clusterstate.DrainedPod
		reason clusterstate.HoldReason
		forced time.Duration // after noon; 0 if never
		exempt bool
	}{
		"nothing":            {ready, clusterstate.HeldByOther, time.Hour, false},
		"budget":             {with(func(p *clusterstate.DrainedPod) { p.PDBs = []string{"a/b"} }), clusterstate.HeldByPDB, 2 * time.Hour, false},
		"refusal":            {with(func(p *clusterstate.DrainedPod) { p.Refused = true }), clusterstate.HeldByRefusal, 2 * time.Hour, false},
		"deleted":            {deleted(ready), clusterstate.HeldByTermination, 91 * time.Minute, false},
		"deleted, in budget": {deleted(with(func(p *clusterstate.DrainedPod) { p.PDBs = []string{"a/b"} })), clusterstate.HeldByTermination, 91 * time.Minute, false},
		"ignored namespace":  {with(func(p *clusterstate.DrainedPod) { p.IgnoredNamespace = true }), clusterstate.HeldByOther, 0, true},
		"finalizers": {deleted(with(func(p *clusterstate.DrainedPod) {
			p.Finalizers, p.KeptByFinalizers = []string{"f"}, true
		})), clusterstate.HeldByTermination, 0, true},
		"ended, and without finalizers": {
			deleted(with(func(p *clusterstate.DrainedPod) { p.KeptByFinalizers = true })), clusterstate.HeldByTermination, 91 * time.Minute, false,
		},
		"node not ready, deleted":             {deleted(clusterstate.DrainedPod{}), clusterstate.HeldByTermination, 0, true},
		"node not ready, removed at once":     {with(func(p *clusterstate.DrainedPod) { p.NodeReady, p.RemovedAtOnce = false, true }), clusterstate.HeldByOther, 0, true},
		"node not ready, with a grace period": {clusterstate.DrainedPod{}, clusterstate.HeldByOther, time.Hour, false},
	} {
		hold := tc.pod.Hold(deadlines)
		var want time.Time
		if tc.forced > 0 {
			want = noon.Add(tc.forced)
		}
		if hold.Reason != tc.reason || !hold.ForcedAt().Equal(want) || (hold.Exempt != "") != tc.exempt {
			t.Errorf("%s: got %+v, forced at %s", name, hold, hold.ForcedAt())
		}
		if overdue := hold.IsOverdue(want.Add(clusterstate.RefusedAfter)); overdue != (tc.forced > 0) || hold.IsOverdue(want.Add(clusterstate.RefusedAfter-1)) {
			t.Errorf("%s: overdue: %t", name, overdue)
		}
	}
	if hold := ready.Hold(clusterstate.NewDrainDeadlines(noon, -1, -1)); !hold.ForcedAt().IsZero() {
		t.Errorf("without a limit: forced at %s", hold.ForcedAt())
	}
}

func TestEtcdCondition_Unhealthy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind, status string
		want         bool
	}{
		{clusterstate.EtcdMembersAvailable, "True", false},
		{clusterstate.EtcdMembersAvailable, "False", true},
		{clusterstate.EtcdMembersAvailable, "", true},
		{"NodeControllerDegraded", "True", true},
		{"NodeControllerDegraded", "Unknown", true},
		{"NodeControllerDegraded", "False", false},
		{"EtcdMembersProgressing", "False", false},
	} {
		c := clusterstate.EtcdCondition{Type: tc.kind, Condition: clusterstate.Condition{Status: tc.status}}
		if got := c.Unhealthy(); got != tc.want {
			t.Errorf("%+v: got %t", tc, got)
		}
	}
}
