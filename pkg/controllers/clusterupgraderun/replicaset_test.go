// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// deliveries are the two ways to deliver actions.
var deliveries = map[string]func(*fleetv1beta1.ManagedClustersUpgrade){
	"by works":        func(*fleetv1beta1.ManagedClustersUpgrade) {},
	"by replica sets": byReplicaSets,
}

// byReplicaSetsAnnotation marks an upgrade whose actions the hub delivers by ManifestWorkReplicaSets.
const byReplicaSetsAnnotation = "test/by-replica-sets"

func byReplicaSets(u *fleetv1beta1.ManagedClustersUpgrade) {
	metav1.SetMetaDataAnnotation(&u.ObjectMeta, byReplicaSetsAnnotation, "true")
}

// forDeliveries runs a test with both ways to deliver actions.
func forDeliveries(t *testing.T, test func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade))) {
	t.Helper()
	for name, by := range deliveries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, by)
		})
	}
}

const (
	workManager       = "work-manager"
	replicaSetLabel   = workv1alpha1.ManifestWorkReplicaSetControllerNameLabelKey
	replicaFinalizer  = "work.open-cluster-management.io/manifest-work-cleanup"
	workManagerLatest = 2 * time.Second
)

// workManagers answer ManifestWorkReplicaSets as the work manager of Open Cluster Management does.
type workManagers struct {
	*simulation.World
	t       testing.TB
	pending bool
	off     bool // the feature gate is off
	sets    int  // how many sets were created
}

func (m *workManagers) observe(change simulation.Change) {
	if _, ok := change.New.(*workv1alpha1.ManifestWorkReplicaSet); ok && change.Old == nil {
		m.sets++
	}
	for _, object := range []client.Object{change.Old, change.New} {
		switch object := object.(type) {
		case *workv1.ManifestWork:
			m.check(object)
		case *workv1alpha1.ManifestWorkReplicaSet, *ocmv1beta1.Placement, *ocmv1beta1.PlacementDecision:
		default:
			continue
		}
		if change.Actor != workManager && !m.pending {
			m.pending = true
			m.After(workManagerLatest, func() { m.pending = false; m.sync() })
		}
	}
}

// check fails if the hub writes what the work manager would remove.
func (m *workManagers) check(work *workv1.ManifestWork) {
	if work != nil && work.Labels[replicaSetLabel] != "" && len(work.Annotations)+len(work.OwnerReferences) > 0 {
		m.Fail(fmt.Errorf("work %s of a set has annotations or owners", work.Name))
	}
}

func (m *workManagers) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *workManagers) sync() {
	if m.off {
		return
	}
	c := m.Client(workManager)
	var sets workv1alpha1.ManifestWorkReplicaSetList
	m.must(c.List(m.t.Context(), &sets))
	for i := range sets.Items {
		m.syncSet(c, &sets.Items[i])
	}
}

func (m *workManagers) syncSet(c client.Client, set *workv1alpha1.ManifestWorkReplicaSet) {
	ctx := m.t.Context()
	selected := map[string]bool{}
	if set.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(set, replicaFinalizer) {
			m.must(c.Update(ctx, set))
		}
		var placement ocmv1beta1.Placement
		err := c.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.PlacementRefs[0].Name}, &placement)
		if apierrors.IsNotFound(err) {
			return
		}
		m.must(err)
		if placement.Annotations[ocmv1beta1.PlacementDisableAnnotation] != "true" {
			m.Fail(errors.New("the placement controller selects clusters for an action"))
		}
		var decisions ocmv1beta1.PlacementDecisionList
		m.must(c.List(ctx, &decisions, client.InNamespace(set.Namespace), client.MatchingLabels{
			ocmv1beta1.PlacementLabel: placement.Name, ocmv1beta1.DecisionGroupIndexLabel: "0",
		}))
		for i := range decisions.Items {
			for _, d := range decisions.Items[i].Status.Decisions {
				selected[d.ClusterName] = true
			}
		}
	}
	key := set.Namespace + "." + set.Name
	var works workv1.ManifestWorkList
	m.must(c.List(ctx, &works, client.MatchingLabels{replicaSetLabel: key}))
	for i := range works.Items {
		if work := &works.Items[i]; !selected[work.Namespace] && work.DeletionTimestamp.IsZero() {
			m.must(client.IgnoreNotFound(c.Delete(ctx, work)))
		}
		delete(selected, works.Items[i].Namespace)
	}
	for name := range selected {
		work := &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: set.Name, Labels: map[string]string{replicaSetLabel: key}},
			Spec:       set.Spec.ManifestWorkTemplate,
		}
		maps.Copy(work.Labels, set.Labels)
		m.must(c.Create(ctx, work))
	}
	if !set.DeletionTimestamp.IsZero() && controllerutil.RemoveFinalizer(set, replicaFinalizer) {
		m.must(c.Update(ctx, set))
	}
}

// TestReplicaSet_delivers_actions shows that one set exists for each action, and that nothing is left of it
// once all clusters are finished.
func TestReplicaSet_delivers_actions(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, actions, byReplicaSets)
	f.RunFor(6 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
	if f.manager.sets != 2 {
		t.Errorf("%d sets were created, want one before and one after the upgrade", f.manager.sets)
	}
	for _, list := range []client.ObjectList{&workv1alpha1.ManifestWorkReplicaSetList{}, &ocmv1beta1.PlacementList{}, &ocmv1beta1.PlacementDecisionList{}} {
		f.Must(f.User.List(t.Context(), list, client.HasLabels{fleetv1beta1.UpgradeLabel}))
		if n := apimeta.LenList(list); n > 0 {
			t.Errorf("%d are left in %T", n, list)
		}
	}
}

// A retry runs an action again that has failed.
func TestRun_retries_an_action(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		w := newWorld(t, actions, by)
		name := delivery.ActionName(string(w.upgrade().UID), delivery.PreUpgrade)
		w.jobs = map[string]string{"backup": "Failed"}
		w.admit()
		w.settle(time.Hour)
		w.expect(fleetv1alpha1.StateFailed, "PreActionDegraded")
		before := w.work(name)
		w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
		w.retry()
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		if after := w.work(name); after == nil || after.UID == before.UID {
			t.Error("the retry has not replaced the work")
		}
	})
}

// A retry after all clusters were finished needs a new set, while the one before is being deleted.
func TestReplicaSet_retry_after_the_end(t *testing.T) {
	t.Parallel()
	w := newWorld(t, actions, byReplicaSets)
	w.jobs = map[string]string{"backup": "Failed"}
	w.admit()
	w.settle(time.Hour)
	w.finishUpgrade()
	w.RunFor(time.Second)
	w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
	w.retry()
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
}

// TestReplicaSet_flag_changes has the hub restart with the other way to deliver actions.
func TestReplicaSet_flag_changes(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		w := newWorld(t, actions, by)
		w.jobs = map[string]string{"backup": "Failed"}
		w.admit()
		w.settle(time.Hour)
		w.Process.Kill()
		w.bySets = !w.bySets
		w.Begin()
		w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
		w.retry()
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateComplete, "Upgraded")
		w.finishUpgrade()
		w.RunFor(time.Minute)
		w.expectNoWorks()
	})
}

// A set that belongs to an earlier Placement, and will be collected, delivers nothing for this one.
func TestReplicaSet_of_an_earlier_Placement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, actions, byReplicaSets)
	w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
	earlier := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "earlier"}}
	w.Create(earlier)
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: delivery.ActionName(string(w.upgrade().UID), delivery.PreUpgrade), Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(w.upgrade().UID)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(earlier, schema.GroupVersionKind{Group: ocmv1beta1.GroupName, Version: "v1beta1", Kind: "Placement"})},
	}}
	set.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: set.Name}}
	w.Create(set)

	w.admit()
	w.RunFor(10 * time.Minute)
	w.expect(fleetv1alpha1.StateInitialized, "Conflict")
	w.expectNoWorks()
	w.Must(w.User.Delete(t.Context(), earlier)) // with what it owns
	w.settle(5 * time.Hour)
	w.expect(fleetv1alpha1.StateComplete, "Upgraded")
}

// A hub whose work manager ignores sets says so within two minutes, and does not deliver in another way.
func TestReplicaSet_that_is_ignored(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, actions, byReplicaSets)
		w.manager.off = true
		w.admit()
		w.RunFor(30 * time.Second)
		if c := apimeta.FindStatusCondition(w.run().Status.Conditions, fleetv1alpha1.ConditionSlow); c == nil || c.Status != metav1.ConditionFalse {
			t.Errorf("at first: %+v", c)
		}
		w.RunFor(90 * time.Second)
		c := apimeta.FindStatusCondition(w.run().Status.Conditions, fleetv1alpha1.ConditionSlow)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "feature gate ManifestWorkReplicaSet") {
			t.Errorf("after two minutes: %+v", c)
		}
		w.expectNoWorks()
		return w
	}
	t.Run("until the work manager is correct", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.jobs = map[string]string{"backup": "Complete", "check": "Complete"}
		w.manager.off = false
		w.manager.sync()
		w.RunFor(time.Minute)
		if c := w.run().Status.Conditions; !apimeta.IsStatusConditionFalse(c, fleetv1alpha1.ConditionSlow) {
			t.Errorf("after the work was created: %+v", c)
		}
		w.settle(5 * time.Hour)
		w.expect(fleetv1alpha1.StateComplete, "Upgraded")
	})
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.settle(time.Hour)
		w.expect(fleetv1alpha1.StateFailed, "PreActionDegraded")
		if m := w.run().Status.Message; !strings.Contains(m, "feature gate ManifestWorkReplicaSet") {
			t.Errorf("message %q", m)
		}
		w.expectUntouched()
	})
}
