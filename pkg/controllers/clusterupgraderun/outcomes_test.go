// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

func TestRun_upgrades_a_cluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admit()
	w.settle(2 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	if diff := cmp.Diff([]string{"Initialized", "PartialUpgrade", "Complete"}, w.states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{target + " Completed", installed + " Completed"}, w.spoke.History()); diff != "" {
		t.Errorf("history of the cluster (-want +got):\n%s", diff)
	}
	if form := w.form(); form != "" {
		t.Errorf("work %s is left", form)
	}
	w.expectReleased()
	w.requests = nil
	w.runFor(24 * time.Hour)
	if len(w.requests) > 0 {
		t.Errorf("requests of a run that has ended: %v", w.requests)
	}
}
