// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"
	"time"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The admission of a cluster that has accepted the release stays, also if its request was withdrawn since.
func TestWaitsSince_until_the_release_is_accepted(t *testing.T) {
	t.Parallel()
	for _, accepted := range []bool{false, true} {
		run := &fleetv1alpha1.ClusterUpgradeRun{}
		run.Spec.Attempt, run.Status.Attempt, run.Status.Accepted, run.Status.Reason = 1, 1, accepted, engine.ReasonPaused
		run.Status.History = []history.Record{{Attempt: 1}}
		m := FleetMember{Member: rollout.Member{State: rollout.Initialized}, Run: run}
		if got := !m.WaitsSince(now).IsZero(); got == accepted {
			t.Errorf("accepted %t: it waits %t", accepted, got)
		}
	}
}

// The admission of a cluster that may have applied an action stays while its agent is silent. A hold still ends it.
func TestWaitsSince_until_an_action_may_be_applied(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{engine.ReasonPaused, fleetv1alpha1.ReasonLockedBy, fleetv1alpha1.ReasonUnreachable, fleetv1alpha1.ReasonDelivered, delivery.ReasonWorkDeleting} {
		for _, applied := range []bool{false, true} {
			run := &fleetv1alpha1.ClusterUpgradeRun{}
			run.Spec.Attempt, run.Status.Attempt, run.Status.Reason = 1, 1, reason
			run.Status.PreUpgradeAction = &fleetv1alpha1.ActionStatus{Applied: applied}
			run.Status.History = []history.Record{{Attempt: 1}}
			m := FleetMember{Member: rollout.Member{State: rollout.Initialized}, Run: run}
			if got, want := !m.WaitsSince(now).IsZero(), !applied || !delivery.AwaitsAgent(reason); got != want {
				t.Errorf("%s, applied %t: it waits %t, want %t", reason, applied, got, want)
			}
		}
	}
}
