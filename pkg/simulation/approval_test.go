// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// approved upgrades like OSD, but only after another client has approved the upgrade.
type approved struct{ upgraders.OSD }

// Runbook returns the runbook of OSD with an approval.
func (a approved) Runbook(attempt upgraders.Attempt) engine.Runbook {
	s := upgraders.NewStepSet(a.Deps, attempt)
	return a.OSD.Runbook(attempt).InsertAfter("StartedNotificationSent", s.ApprovalGranted(20*time.Minute)).WithCommitGates(s.StillApproved())
}

// TestApproval makes another client respond at a given minute of an upgrade that starts at 12:10
// and waits until 12:30.
func TestApproval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers map[time.Duration]metav1.ConditionStatus // by time since 12:00
		reason  string                                   // why the upgrade ended
		step    string                                   // message of the step at 12:25
		sick    bool                                     // whether the cluster is unhealthy from 12:09 to 12:20
	}{
		"approved ahead of time":    {map[time.Duration]metav1.ConditionStatus{time.Minute: "True"}, "Upgraded", "approved: CHG0042: True by the board", false},
		"approved while it waits":   {map[time.Duration]metav1.ConditionStatus{15 * time.Minute: "True"}, "Upgraded", "approved: CHG0042: True by the board", false},
		"denied, and approved":      {map[time.Duration]metav1.ConditionStatus{13 * time.Minute: "False", 28 * time.Minute: "True"}, "Upgraded", "not approved: CHG0042: False by the board", false},
		"denied until the deadline": {map[time.Duration]metav1.ConditionStatus{13 * time.Minute: "False", 45 * time.Minute: "True"}, "NotApproved", "not approved: CHG0042: False by the board", false},
		"no answer":                 {nil, "NotApproved", "waiting for the condition Approved in status.conditions", false},
		"withdrawn before the commit": {
			map[time.Duration]metav1.ConditionStatus{time.Minute: "True", 15 * time.Minute: "False"},
			"WindowMissed",
			"not approved: CHG0042: False by the board", true,
		},
		"withdrawn, and approved again": {
			map[time.Duration]metav1.ConditionStatus{time.Minute: "True", 15 * time.Minute: "False", 28 * time.Minute: "True"},
			"Upgraded",
			"not approved: CHG0042: False by the board", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world := simulation.New(simulation.WorldOptions{})
			cluster, err := openshift.NewScript(world, "4.4.5", "fast-4.4", "4.4.6")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := world.Start(operator()); err != nil {
				t.Fatal(err)
			}
			board := world.Client("change-board")
			upgrade := &upgradev1alpha1.UpgradeConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "upgrade"},
				Spec: upgradev1alpha1.UpgradeConfigSpec{
					Type: "APPROVED", UpgradeAt: "2026-03-01T12:10:00Z", PDBForceDrainTimeout: new(int32(60)),
					Desired: upgradev1alpha1.Update{Version: "4.4.6", Channel: cluster.Channel},
				},
			}
			if err := board.Create(t.Context(), upgrade); err != nil {
				t.Fatal(err)
			}
			get := func() *upgradev1alpha1.UpgradeConfig {
				var cfg upgradev1alpha1.UpgradeConfig
				if err := board.Get(t.Context(), client.ObjectKeyFromObject(upgrade), &cfg); err != nil {
					world.Fail(err)
				}
				return &cfg
			}
			for after, status := range tc.answers {
				world.After(after, func() {
					cfg := get()
					apimeta.SetStatusCondition(&cfg.Status.Conditions, metav1.Condition{
						Type: upgradev1alpha1.ConditionApproved, Status: status, ObservedGeneration: cfg.Generation, Reason: "CHG0042", Message: string(status) + " by the board",
					})
					if err := board.Status().Update(t.Context(), cfg); err != nil {
						world.Fail(err)
					}
				})
			}
			name := "ApprovalGranted"
			if tc.sick {
				name = "CommenceUpgrade"
				degraded := func(status configv1.ConditionStatus) func() {
					return func() {
						cluster.ChangeOperator(func(o *configv1.ClusterOperator) {
							for i := range o.Status.Conditions {
								if o.Status.Conditions[i].Type == configv1.OperatorDegraded {
									o.Status.Conditions[i].Status = status
								}
							}
						})
					}
				}
				world.After(9*time.Minute, degraded(configv1.ConditionTrue))
				world.After(20*time.Minute, degraded(configv1.ConditionFalse))
			}
			world.After(25*time.Minute, func() {
				if got := get().Status.History[0].Step(name).Message; got != tc.step {
					t.Errorf("the step %s says %q at 12:25, want %q", name, got, tc.step)
				}
			})
			if err := world.RunFor(3 * time.Hour); err != nil {
				t.Fatal(err)
			}
			end := get()
			if got := end.Status.History[0].Reason; got != tc.reason {
				t.Errorf("the upgrade ended as %s, want %s: %+v", got, tc.reason, end.Status.History[0])
			}
			if answer := apimeta.FindStatusCondition(end.Status.Conditions, upgradev1alpha1.ConditionApproved); (answer != nil) != (len(tc.answers) > 0) {
				t.Errorf("the operator left the approval as %+v", answer)
			}
		})
	}
}
