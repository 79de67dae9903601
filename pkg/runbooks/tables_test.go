// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
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
	osd, aro := OSD{deps}.Runbook(&v1alpha1.UpgradeConfig{}), ARO{deps}.Runbook(&v1alpha1.UpgradeConfig{})
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
	full := &v1alpha1.UpgradeConfig{Spec: v1alpha1.UpgradeConfigSpec{
		Type: "OSD", CapacityReservation: new(true), Paused: new(true), Desired: v1alpha1.Update{Version: "4.4.6", Channel: "fast-4.4"},
	}}
	for name, make := range map[string]func(*v1alpha1.UpgradeConfig) engine.Runbook{"OSD": OSD{deps}.Runbook, "ARO": ARO{deps}.Runbook} {
		if diff := cmp.Diff(names(make(&v1alpha1.UpgradeConfig{}).Steps), names(make(full).Steps)); diff != "" {
			t.Errorf("%s (-empty +full):\n%s", name, diff)
		}
	}
}
