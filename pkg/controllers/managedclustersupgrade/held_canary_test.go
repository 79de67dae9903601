// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// A canary that waits for its turn of another upgrade is available, also while that upgrades it for longer than the stall timeout.
func TestCanary_waits_for_another_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.DependsOn = []fleetv1beta1.Dependency{{Name: "first", PerCluster: true}}
	})
	w.makeCanary("c0002")
	w.slow["c0002"] = true
	w.Create(w.upgrade("first"))
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

// The time in which nothing may begin does not count for a canary that cannot begin.
func TestCanary_is_not_available_while_nothing_may_begin(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct{ prevent, permit func(*world) }{
		"paused": {
			func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true }) },
			func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false }) },
		},
		"dry run": {
			func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = true }) },
			func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = false }) },
		},
		"operators without an image": {
			func(w *world) {
				w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
					u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
				})
			},
			func(w *world) {
				w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.OCPOperators = nil })
			},
		},
		"dependency": {
			func(w *world) {
				w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
					u.Spec.DependsOn = []fleetv1beta1.Dependency{{Name: "first"}}
				})
			},
			func(w *world) { w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DependsOn = nil }) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, canary)
			w.makeCanary("c0000")
			w.setAvailable("c0000", metav1.ConditionUnknown)
			end.prevent(w)
			w.RunFor(2 * time.Hour)
			end.permit(w)
			w.RunFor(40 * time.Minute)
			w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonHeld)
			w.setAvailable("c0000", metav1.ConditionTrue)
			w.RunFor(hours)
			w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
		})
	}
}

// A canary that cannot begin in windows that are shorter than the stall timeout stops the rollout in one of the next windows.
func TestCanary_is_not_available_in_short_windows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, canary, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.Windows = []fleetv1beta1.AdmissionWindow{{Cron: "0 22 * * *", Location: "UTC", Duration: "30m"}}
	})
	w.makeCanary("c0000")
	w.setAvailable("c0000", metav1.ConditionUnknown)
	w.RunFor(22 * time.Hour) // after one window
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonOutsideWindow)
	w.RunFor(12*time.Hour + 10*time.Minute) // in the next one
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonHeld)
	w.RunFor(10 * time.Minute)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonCanaryNotAvailable)
}

// The run of a cluster goes on later than its upgrade. Until then, it seems to be held since the pause began.
func TestResume_withdraws_no_admission(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]bool{"at once": false, "of a hub that was down": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.slow["c0000"] = true
			w.RunFor(6 * time.Minute)
			run, now := w.run("c0000"), metav1.NewTime(w.Now())
			held := history.StepCondition{Type: fleetv1alpha1.StepPreUpgradeActionAvailable, Status: metav1.ConditionFalse, Reason: engine.ReasonPaused, StartTime: &now}
			run.Status.State, run.Status.Reason = fleetv1alpha1.StateInitialized, engine.ReasonPaused
			run.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{held}}}
			w.UpdateStatus(run)
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
			w.RunFor(2 * time.Hour)
			if down {
				w.Process.Kill()
			}
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = false })
			if down {
				w.Begin()
			}
			w.RunFor(10 * time.Minute)
			if w.run("c0000").Spec.AdmissionTime.IsZero() {
				t.Error("the admission is withdrawn")
			}
		})
	}
}
