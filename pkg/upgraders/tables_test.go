// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

func names(steps []engine.Step) []string {
	var all []string
	for _, step := range steps {
		all = append(all, step.Name)
	}
	return all
}

func TestARO_is_a_subset_of_OSD(t *testing.T) {
	t.Parallel()
	deps := Deps{Config: config.Default()}
	osd, aro := OSD{deps}.Runbook(Attempt{}), ARO{deps}.Runbook(Attempt{})
	for _, book := range []engine.Runbook{osd, aro} {
		if err := book.Validate(); err != nil {
			t.Error(err)
		}
	}
	left := []string{"ClusterUpgradeable", "DelayedNotificationSent", "PostUpgradeProcedures"}
	want := slices.DeleteFunc(names(osd.Steps), func(name string) bool { return slices.Contains(left, name) })
	if diff := cmp.Diff(want, names(aro.Steps)); diff != "" {
		t.Errorf("ARO's steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(names(osd.Cleanup), names(aro.Cleanup)); diff != "" {
		t.Errorf("ARO's clean-up (-want +got):\n%s", diff)
	}
}

func TestTables_have_the_same_shape_for_every_UpgradeConfig(t *testing.T) {
	t.Parallel()
	deps := Deps{Config: config.Default()}
	full := &upgradev1alpha1.UpgradeConfig{Spec: upgradev1alpha1.UpgradeConfigSpec{
		Type: "OSD", CapacityReservation: new(true), Paused: new(true), Desired: upgradev1alpha1.Update{Version: "4.4.6", Channel: "fast-4.4"},
	}}
	for name, upgrader := range map[string]ClusterUpgrader{"OSD": OSD{deps}, "ARO": ARO{deps}} {
		if diff := cmp.Diff(names(upgrader.Runbook(Attempt{}).Steps), names(upgrader.Runbook(Attempt{Config: full}).Steps)); diff != "" {
			t.Errorf("%s (-empty +full):\n%s", name, diff)
		}
	}
}

// The lines of an upgrade that delays pools are the same for every attempt.
func TestStepSet_with_delayed_pools(t *testing.T) {
	t.Parallel()
	table := func(of Attempt) engine.Runbook {
		s := NewStepSet(Deps{Config: config.Default()}, of).WithDelayedPools(14*time.Hour, pools.Delay{Selector: labels.Everything(), Min: time.Hour, Max: 2 * time.Hour})
		return engine.Runbook{
			Steps: []engine.Step{
				s.CreateHooksDone(), s.StartHooksDone(), s.PoolsPaused(), s.UpgradeStartHooksDone(), s.CommenceUpgrade(engine.Gate{Name: "NoOtherUpdate", Check: s.NoOtherUpdate}),
				s.ControlPlaneUpgraded(), s.UpgradeCompleteHooksDone(), s.DelayedPoolsUpdated(),
			},
			Cleanup: append(s.Cleanup(), s.PoolsPausedOnFailure("the pools of the upgrader", nil), s.FailureHooksDone()),
			Finally: []engine.Step{s.SuccessHooksDone(), s.FinishHooksDone()}, PauseReasons: s.PauseReasons(),
		}
	}
	empty := table(Attempt{})
	cfg := &upgradev1alpha1.UpgradeConfig{Spec: upgradev1alpha1.UpgradeConfigSpec{Type: "NIGHTLY", UpgradeAt: "2026-03-01T12:00:00Z", Desired: upgradev1alpha1.Update{Version: "4.4.6"}}}
	full := table(Attempt{Config: cfg})
	if err := empty.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(append(names(empty.Steps), names(empty.Cleanup)...), append(names(full.Steps), names(full.Cleanup)...)); diff != "" {
		t.Errorf("(-empty +full):\n%s", diff)
	}
	gates := full.CommitStep().Gates
	if last := gates[len(gates)-1].Name; last != "AddedPoolsPaused" {
		t.Errorf("the last gate of the commit is %s", last)
	}
	if !slices.Contains(names(full.Cleanup), "PoolsReleased") {
		t.Errorf("the cleanup releases no pools: %v", names(full.Cleanup))
	}
	if by := full.Steps[len(full.Steps)-1].FailBy; !by.Equal(time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)) {
		t.Errorf("DelayedPoolsUpdated fails by %s", by)
	}
}
