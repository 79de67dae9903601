// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"slices"
	"testing"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

func TestCanaries_among_clusters_that_have_failed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6, maxFailures(1), concurrency(2))
	w.fails["c0000"], w.fails["c0001"] = 1, 2
	w.RunFor(hours)
	w.expect("6/0/0/0/2/4", fleetv1beta1.ReasonMaxFailuresExceeded)
	w.makeCanary("c0000")
	w.makeCanary("c0001")
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		canary(u)
		u.Spec.Attempt = 2
		u.Spec.UpgradeStrategy.MaxConcurrency, u.Spec.UpgradeStrategy.MaxFailures = nil, nil
	})
	w.RunFor(hours)
	w.expect("6/0/0/1/1/4", fleetv1beta1.ReasonCanaryFailed)
}

func TestCanaries_that_are_complete_are_observed_first(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, maxFailures(0))
	w.fails["c0001"] = 1
	w.RunFor(hours)
	w.expect("4/0/0/1/1/2", fleetv1beta1.ReasonMaxFailuresExceeded)
	w.makeCanary("c0000")
	w.order = nil
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		canary(u)
		u.Spec.Attempt = 2
	})
	w.RunFor(hours)
	w.expect("4/0/0/4/0/0", fleetv1beta1.ReasonFinished)
	if want := []string{"c0000", "c0001", "c0002", "c0003"}; !slices.Equal(w.order, want) {
		t.Errorf("order %v, want %v", w.order, want)
	}
	if run := w.run("c0000"); !run.Spec.Canary || run.Spec.Attempt != 2 || run.Spec.Timeouts.Soak != "30m" {
		t.Errorf("run %+v", run.Spec)
	}
}

func TestCanaries_that_are_replaced_are_none_any_longer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary)
	w.makeCanary("c0000")
	w.fails["c0000"] = 2
	w.RunFor(hours)
	w.expect("3/0/0/0/1/2", fleetv1beta1.ReasonCanaryFailed)
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "canary") })
	w.makeCanary("c0001")
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		canary(u)
		u.Spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchLabels["region"] = "north" // fixes them again
		u.Spec.Attempt = 2
	})
	w.order = nil
	w.RunFor(hours)
	w.expect("3/0/0/2/1/0", fleetv1beta1.ReasonFinished)
	if want := []string{"c0001", "c0000", "c0002"}; !slices.Equal(w.order, want) {
		t.Errorf("order %v, want %v", w.order, want)
	}
}

func TestCanaries_of_which_none_is_left(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, canary)
	w.detachable = true
	w.makeCanary("c0000")
	w.RunFor(20 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(time.Hour) // it is complete
	w.Delete(w.run("c0000"))
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Attempt, u.Spec.Paused = 2, false })
	w.RunFor(hours)
	w.expect("3/0/0/0/0/3", fleetv1beta1.ReasonNoCanary)
	if c := w.condition(history.ConditionStalled); c.Reason != fleetv1beta1.ReasonNoCanary || !slices.Contains(w.written, "Warning NoCanary") {
		t.Errorf("condition Stalled %+v, Events %v", c, w.written)
	}
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchLabels["region"] = "north"
	})
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}
