// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// decideClusters writes the decisions of the Placement of the upgrade, as its controller does.
func (w *world) decideClusters(count int32, clusters ...string) {
	w.TB.Helper()
	placement := simulation.Get(w.Harness, client.ObjectKey{Namespace: stores.Namespace, Name: selection.PlacementName(w.get())}, &ocmv1beta1.Placement{})
	decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: stores.Namespace, Name: placement.Name + "-decision-1", Labels: map[string]string{ocmv1beta1.PlacementLabel: placement.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(placement, schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"})},
	}}
	for _, name := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: name})
	}
	_ = w.User.Delete(w.TB.Context(), decision)
	w.Must(w.Add(decision))
	placement.Status.NumberOfSelectedClusters = count
	placement.Status.Conditions = []metav1.Condition{{
		Type: ocmv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled", LastTransitionTime: metav1.NewTime(w.Now()),
	}}
	w.UpdateStatus(placement)
}

func TestPlacement_selects_the_clusters(t *testing.T) {
	t.Parallel()
	w := newPlacementWorld(t, []string{"a", "b", "c"})
	w.RunFor(time.Minute)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable {
		t.Errorf("before the decisions: %s", w.describe())
	}
	w.decideClusters(2, "a")
	w.RunFor(time.Minute)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable || len(w.order) > 0 {
		t.Errorf("with one of two decisions: %s, admitted %v", w.describe(), w.order)
	}
	w.decideClusters(2, "a", "b")
	w.RunFor(hours)
	w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
	if n := w.Count("create Placement"); n != 1 {
		t.Errorf("%d Placements were created", n)
	}
}

// newPlacementWorld is a world with clusters that the Placement of a clusterSelector selects.
func newPlacementWorld(t *testing.T, clusters []string, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *world {
	t.Helper()
	owned := func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.Placement, u.Spec.ClusterSelector = nil, &fleetv1beta1.ClusterSelector{}
	}
	w := newWorld(t, 0, append([]func(*fleetv1beta1.ManagedClustersUpgrade){owned}, edits...)...)
	w.placements = true
	w.Process.Kill()
	w.Begin()
	for _, name := range clusters {
		w.addCluster(name)
	}
	return w
}

func TestPlacement_that_is_rejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.RunFor(time.Minute)
	started := len(w.order)
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: forbidden()}.If(func(r simulation.Request) bool {
		return r.Verb == "create" && r.Kind == "Placement"
	})
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{} })
	w.Requests = nil
	w.RunFor(10 * time.Minute)
	if n := w.Count("create Placement"); n == 0 || n > 20 {
		t.Errorf("%d creates in 10 minutes, want 1 to 20", n)
	}
	selected := w.condition(fleetv1beta1.ConditionSelected)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable || !strings.Contains(selected.Message, "creating the placement of clusterSelector") {
		t.Errorf("%s, %+v", w.describe(), selected)
	}
	if u := w.get(); u.Status.ObservedGeneration != u.Generation {
		t.Errorf("the status reflects generation %d of %d", u.Status.ObservedGeneration, u.Generation)
	}
	w.RunFor(hours)
	if u := w.get(); len(w.order) != started || u.Status.ClustersSummery.Complete != 1 {
		t.Errorf("%s, admitted %v", w.describe(), w.order)
	}
	w.Writes = nil
	w.RunFor(hours)
	if w.Count("create Placement") == 0 || w.reason() != fleetv1beta1.ReasonFinished {
		t.Error(w.describe())
	}
}

// The decisions of the earlier selector are consistent until the placement controller has read the
// new one.
func TestPlacement_after_a_change_of_the_selector(t *testing.T) {
	t.Parallel()
	w := newPlacementWorld(t, []string{"a", "b"}, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused = true }, concurrency(2))
	w.RunFor(time.Minute)
	w.decideClusters(2, "a", "b")
	w.RunFor(10 * time.Minute)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.Paused = false
		u.Spec.ClusterSelector.MatchLabels = map[string]string{"name": "a"}
	})
	w.RunFor(20 * time.Second)
	w.Process.Kill()
	w.Begin()
	w.RunFor(20 * time.Second)
	if w.reason() != fleetv1beta1.ReasonSelectionUnstable || len(w.order) > 0 {
		t.Errorf("with the earlier decisions: %s, admitted %v", w.describe(), w.order)
	}
	w.decideClusters(1, "a")
	w.RunFor(3 * time.Minute)
	if diff := cmp.Diff([]string{"a"}, w.order); diff != "" {
		t.Errorf("%s, admitted (-want +got):\n%s", w.describe(), diff)
	}
}
