// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// The admission of a cluster that has accepted the release stays, also if its request was withdrawn since.
func TestWaitsSince_ends_once_the_release_is_accepted(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for accepted, want := range map[bool]time.Time{false: since.Time, true: {}} {
		run := &fleetv1alpha1.ClusterUpgradeRun{}
		run.Spec.Attempt, run.Status.Attempt, run.Status.Accepted, run.Status.Reason = 1, 1, accepted, engine.ReasonPaused
		run.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{{
			Type: fleetv1alpha1.StepUpgradeDelivered, Status: metav1.ConditionFalse, Reason: engine.ReasonPaused, StartTime: &since,
		}}}}
		m := FleetMember{Member: rollout.Member{State: rollout.Initialized}, Run: run}
		if got := m.WaitsSince(); !got.Equal(want) {
			t.Errorf("accepted %t: it waits since %s, want %s", accepted, got, want)
		}
	}
}

// The admission of a cluster that may have applied an action stays while its agent is silent. A hold still ends it.
func TestWaitsSince_ends_once_an_action_may_be_applied(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for _, step := range []string{fleetv1alpha1.StepPreUpgradeActionAvailable, fleetv1alpha1.StepUpgradeDelivered} {
		for _, reason := range []string{engine.ReasonPaused, fleetv1alpha1.ReasonUnreachable, fleetv1alpha1.ReasonDelivered, delivery.ReasonWorkDeleting} {
			for _, applied := range []bool{false, true} {
				run := &fleetv1alpha1.ClusterUpgradeRun{}
				run.Spec.Attempt, run.Status.Attempt, run.Status.Reason = 1, 1, reason
				run.Status.PreUpgradeAction = &fleetv1alpha1.ActionStatus{Applied: applied}
				run.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{{
					Type: step, Status: metav1.ConditionFalse, Reason: reason, StartTime: &since,
				}}}}
				m := FleetMember{Member: rollout.Member{State: rollout.Initialized}, Run: run}
				if got, want := !m.WaitsSince().IsZero(), !applied || reason == engine.ReasonPaused; got != want {
					t.Errorf("%s, %s, applied %t: it waits %t, want %t", step, reason, applied, got, want)
				}
			}
		}
	}
}
