// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
)

// Only a change of a selected cluster, and only one that decides about admission, causes a
// pass.
func TestClusters_whose_changes_cause_a_pass(t *testing.T) {
	t.Parallel()
	w := newPlacementWorld(t, []string{"a", "b", "other"}, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true })
	w.RunFor(time.Minute)
	w.decideClusters(2, "a", "b")
	w.RunFor(10 * time.Minute)
	hold := func(c *clusterv1.ManagedCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "maintenance")
	}
	for _, tc := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"a hold of a selected cluster", func() { w.editCluster("a", hold) }, true},
		{"a hold of another cluster", func() { w.editCluster("other", hold) }, false},
		{"a claim of a selected cluster", func() { w.claim("a", "version.openshift.io", "4.20.5") }, true},
		{"a claim that decides nothing", func() { w.claim("a", "region.open-cluster-management.io", "eu") }, false},
		{"an annotation of a selected cluster", func() {
			w.editCluster("b", func(c *clusterv1.ManagedCluster) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "note", "x") })
		}, false},
		{"a selected cluster that becomes unreachable", func() { w.setReachable("a", metav1.ConditionUnknown) }, true},
		{"another cluster that becomes unreachable", func() { w.setReachable("other", metav1.ConditionUnknown) }, false},
		{"a selected cluster that the hub accepts no more", func() {
			w.editCluster("b", func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false })
		}, true},
	} {
		before := w.reconciles
		tc.change()
		w.RunFor(5 * time.Second)
		if got := w.reconciles > before; got != tc.want {
			t.Errorf("%s causes a pass: %t, want %t", tc.name, got, tc.want)
		}
	}
}

// A dry run depends on the clusters that other upgrades are upgrading.
func TestRuns_of_other_upgrades_cause_a_pass_of_a_dry_run(t *testing.T) {
	t.Parallel()
	for _, isDryRun := range []bool{true, false} {
		w := newPlacementWorld(t, []string{"a", "other"}, func(u *fleetv1beta1.ManagedClustersUpgrade) {
			u.Spec.DryRun, u.Spec.ClaimsOnly, u.Spec.Paused = isDryRun, isDryRun, true
		})
		w.RunFor(time.Minute)
		w.decideClusters(1, "a")
		w.RunFor(time.Minute)
		for name, want := range map[string]bool{"a": isDryRun, "other": false} {
			before := w.reconciles
			run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "rival"}}
			run.Spec = fleetv1alpha1.ClusterUpgradeRunSpec{
				ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: "rivals", Name: "rival", UID: "rival"},
				Attempt:                1, AdmissionTime: metav1.NewTime(w.Now()),
			}
			w.Create(run)
			w.RunFor(5 * time.Second)
			if got := w.reconciles > before; got != want {
				t.Errorf("dry run %t: a run on cluster %s causes a pass: %t, want %t", isDryRun, name, got, want)
			}
		}
	}
}

func TestClusters_that_cannot_be_read_are_reported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.RunFor(time.Minute)
	w.unreadable = errors.New("no answer")
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { c.Labels["x"] = "y" })
	w.RunFor(time.Minute)
	c := w.condition(fleetv1beta1.ConditionAdmitting)
	if want := "selecting the clusters of ManagedClustersUpgrade fleet/stores: no answer"; c.Reason != fleetv1beta1.ReasonCannotObserve || c.Message != want {
		t.Errorf("%s: %s, want %s", c.Reason, c.Message, want)
	}
	if health, err := kstatus.Of(w.get()); err != nil || health.Ready != "Unknown" || health.Reconciling != "True" || health.Status != "InProgress" {
		t.Errorf("%+v, %v", health, err)
	}
	w.Requests = nil
	w.RunFor(hours)
	if n := w.Count("patch ManagedClustersUpgrade/status"); n > 0 {
		t.Errorf("the same error was written %d times more", n)
	}
	w.unreadable = nil
	w.RunFor(hours)
	w.expect("3/0/0/3/0/0", fleetv1beta1.ReasonFinished)
}

// A deselected cluster that should be retried, and whose earlier attempt is still being cleaned up, is not counted and
// keeps its slot until that is over.
func TestDeselected_cluster_keeps_its_slot_until_it_is_cleaned_up(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(1))
	w.fails["c0000"] = 1
	w.RunFor(10 * time.Minute)
	w.cleaning["c0000"] = true
	w.RunFor(time.Hour)
	w.expect("2/0/0/0/1/1", fleetv1beta1.ReasonNoFreeSlot)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.Attempt = 2
		u.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(1))
	})
	w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	w.RunFor(time.Hour)
	w.expect("1/0/0/0/0/1", fleetv1beta1.ReasonNoFreeSlot)
	w.cleaning["c0000"] = false
	w.release(w.run("c0000"))
	w.RunFor(hours)
	w.expect("1/0/0/1/0/0", fleetv1beta1.ReasonFinished)
}

// A hub that cannot upgrade operators begins no upgrade of them, and says so.
func TestAdmission_of_operators_without_an_image(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, concurrency(1), func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
	})
	w.RunFor(hours)
	w.expect("2/0/0/0/0/2", fleetv1beta1.ReasonNoOperatorImage)
	expectMessage := func(removable bool) {
		t.Helper()
		message := w.condition(fleetv1beta1.ConditionAdmitting).Message
		if !strings.Contains(message, "--image") || strings.Contains(message, "or remove ocpOperators") != removable {
			t.Errorf("message %q", message)
		}
	}
	expectMessage(true)
	w.image = "registry.example.com/operator@sha256:0a"
	w.Restart()
	w.RunFor(10 * time.Minute) // the first cluster is admitted: spec.ocpOperators is immutable
	w.image = ""
	w.Restart()
	w.RunFor(hours)
	w.expect("2/0/0/1/0/1", fleetv1beta1.ReasonNoOperatorImage)
	expectMessage(false)
	w.image = "registry.example.com/operator@sha256:0a"
	w.Restart()
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
}
