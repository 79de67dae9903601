// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
)

// A canary that waits for its turn of another upgrade is available.
func TestCanary_waits_for_another_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.DependsOn = []fleetv1beta1.Dependency{{Name: "first", PerCluster: true}}
	})
	w.makeCanary("c0002")
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
