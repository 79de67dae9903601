// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	workv1alpha1 "open-cluster-management.io/api/work/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func (f *fleet) edit(do func(*fleetv1beta1.ManagedClustersUpgradeSpec)) {
	f.TB.Helper()
	upgrade := f.upgrade()
	do(&upgrade.Spec)
	f.Update(upgrade)
}

// changedTable is the table of another release: it has two more steps, lacks one, and renames one.
func changedTable(table engine.Runbook) engine.Runbook {
	added := func(name string) engine.Step {
		return engine.Step{Name: name, Doc: "Is done at once.", Do: func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Done("the changed table has this step"), nil
		}}
	}
	table = table.InsertAfter(fleetv1alpha1.StepPreUpgradeActionAvailable, added("AddedBeforeTheCommit")).
		InsertAfter(fleetv1alpha1.StepClusterUpgraded, added("AddedAfterTheCommit"))
	table.Steps = slices.DeleteFunc(table.Steps, func(step engine.Step) bool { return step.Name == fleetv1alpha1.StepSoaked })
	for i := range table.Finally {
		table.Finally[i].Name, table.Finally[i].FormerNames = "WorksDeleted", []string{table.Finally[i].Name}
	}
	return table
}

// TestLifecycle_hub_is_upgraded_mid_rollout replaces the hub by another release, which has another table of
// steps and another image of the Job that approves operators. Each cluster is upgraded once: what runs on it
// runs once, and no delivered work is rewritten.
func TestLifecycle_hub_is_upgraded_mid_rollout(t *testing.T) {
	t.Parallel()
	present, other := release{image: hubImage}, release{image: "quay.io/example/operator@sha256:" + fmt.Sprintf("%064d", 3), table: changedTable}
	for name, releases := range map[string][2]release{"to a changed table": {present, other}, "from a changed table": {other, present}} {
		for _, n := range simulation.Sample(16) {
			at := time.Duration(n) * 11 * time.Minute
			t.Run(fmt.Sprintf("%s after %s", name, at), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t, 3, concurrency(2), canary("c1"), actions, operators)
				f.Process.Kill()
				f.start(releases[0])
				f.RunFor(at)
				f.Process.Kill()
				f.observeLess()
				f.RunFor(time.Minute)
				f.start(releases[1])
				f.RunFor(8 * time.Hour)
				f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
				for name, cluster := range f.spokes {
					if diff := cmp.Diff(steps(name, 8), f.of(name)); diff != "" {
						t.Errorf("what began on %s (-want +got):\n%s", name, diff)
					}
					if jobs := cluster.Objects("Job"); len(jobs) > 0 {
						t.Errorf("%d Jobs are left on %s", len(jobs), name)
					}
				}
				f.expectNothingLeft()
			})
		}
	}
}

// observeLess removes the last feedback rule of the works of the platform. An earlier release lacked it.
func (f *fleet) observeLess() {
	f.TB.Helper()
	works := simulation.List(f.Harness, &workv1.ManifestWorkList{})
	for i := range works.Items {
		if work := &works.Items[i]; work.Name == delivery.UpgradeName(work.Namespace) {
			paths := &work.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
			*paths = (*paths)[:len(*paths)-1]
			f.Update(work)
		}
	}
}

// expectNothingLeft checks that no work, set, Placement of ours, or lock is left.
func (f *fleet) expectNothingLeft() {
	f.TB.Helper()
	for _, list := range []client.ObjectList{
		&workv1.ManifestWorkList{}, &workv1alpha1.ManifestWorkReplicaSetList{}, &ocmv1beta1.PlacementList{}, &ocmv1beta1.PlacementDecisionList{},
	} {
		f.Must(f.User.List(f.TB.Context(), list, client.HasLabels{fleetv1beta1.UpgradeLabel}))
		if n := apimeta.LenList(list); n > 0 {
			f.TB.Errorf("%d are left in %T", n, list)
		}
	}
	leases := simulation.List(f.Harness, &coordinationv1.LeaseList{})
	for i := range leases.Items {
		f.TB.Errorf("Lease %s/%s is left", leases.Items[i].Namespace, leases.Items[i].Name)
	}
}

// expectDeleted checks that the upgrade is gone with its runs.
func (f *fleet) expectDeleted() {
	f.TB.Helper()
	for _, list := range []client.ObjectList{&fleetv1beta1.ManagedClustersUpgradeList{}, &fleetv1alpha1.ClusterUpgradeRunList{}} {
		f.Must(f.User.List(f.TB.Context(), list))
		if n := apimeta.LenList(list); n > 0 {
			f.TB.Errorf("%d are left in %T", n, list)
		}
	}
}

// times are the moments of a rollout: before it, actions of the canary, its upgrade, its soak, c2 until it times out,
// c3, and the end.
var times = []time.Duration{
	0, 4 * time.Minute, 20 * time.Minute, 47 * time.Minute, 65 * time.Minute, 88 * time.Minute, 2 * time.Hour,
	220 * time.Minute, 4 * time.Hour, 6 * time.Hour,
}

// TestLifecycle_deleted_at_every_state deletes the upgrade while its clusters are in each state: c2 never
// completes. What was delivered goes on without the hub, and all else is undone. Nothing waits for an agent
// that is offline.
func TestLifecycle_deleted_at_every_state(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		for _, offline := range []bool{false, true} {
			for _, at := range simulation.Sampled(times) {
				t.Run(fmt.Sprintf("after %s, offline: %t", at, offline), func(t *testing.T) {
					t.Parallel()
					f := newFleet(t, 3, canary("c1"), actions, by)
					f.stuck["c2"] = true
					f.RunFor(at)
					if offline {
						f.setOffline(true)
						f.RunFor(time.Minute)
					}
					delivered := map[string]bool{}
					for name, cluster := range f.spokes {
						delivered[name] = cluster.Desired() == target
					}
					f.Delete(f.upgrade())
					f.RunFor(2 * time.Minute)
					f.expectDeleted()
					f.setOffline(false)
					f.RunFor(3 * time.Hour)
					f.expectNothingLeft()
					for name, cluster := range f.spokes {
						want := []string{installed + " Completed"}
						switch {
						case delivered[name] && name == "c2":
							want = append([]string{target + " Partial"}, want...)
						case delivered[name]:
							want = append([]string{target + " Completed"}, want...)
						}
						if cluster.Version() == nil {
							t.Fatalf("the ClusterVersion of %s is deleted", name)
						}
						if diff := cmp.Diff(want, cluster.History()); diff != "" || (cluster.Desired() == target) != delivered[name] {
							t.Errorf("%s requests %q; its history (-want +got):\n%s", name, cluster.Desired(), diff)
						}
					}
				})
			}
		}
	})
}

// TestLifecycle_lowered_concurrency interrupts no cluster, and admits none until enough of them are finished.
func TestLifecycle_lowered_concurrency(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, concurrency(3))
	f.RunFor(20 * time.Minute)
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
		spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(1))
	})
	f.RunFor(20 * time.Minute)
	f.expectStates(map[string]string{"c1": "PartialUpgrade", "c2": "PartialUpgrade", "c3": "PartialUpgrade"})
	f.RunFor(20 * time.Minute)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete", "c4": "PartialUpgrade"})
	f.RunFor(5 * time.Hour)
	if s := f.upgrade().Status.ClustersSummery; s.Complete != 6 {
		t.Errorf("%+v", s)
	}
}

// TestLifecycle_changed_placement has the upgrade select its clusters by another Placement: the cluster in
// flight goes on, one that has not begun is dropped, and new ones join.
func TestLifecycle_changed_placement(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4)
	f.selectClusters("c1", "c2")
	f.selectBy("others", "c3", "c4")
	f.RunFor(20 * time.Minute)
	f.expectStates(map[string]string{"c1": "PartialUpgrade"})
	f.edit(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
		spec.Placement = []fleetv1beta1.PlacementReference{{Name: "others"}}
	})
	f.RunFor(3 * time.Minute)
	if s := f.upgrade().Status.ClustersSummery; s.Total != 3 || s.PartialUpgrade != 1 {
		t.Errorf("after the change: %+v", s)
	}
	f.RunFor(5 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c3": "Complete", "c4": "Complete"})
	if s := f.upgrade().Status.ClustersSummery; s.Total != 3 || s.Complete != 3 {
		t.Errorf("%+v", s)
	}
	if f.spokes["c2"].Desired() != "" {
		t.Error("a cluster that is not selected any more is upgraded")
	}
}
