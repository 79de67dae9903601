// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/managedclustersupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

// fleet is a hub with all its controllers, and clusters whose agents answer works after ten seconds. A
// Job of an action takes five minutes, an upgrade forty.
type fleet struct {
	*simulation.Harness
	release release
	spokes  map[string]*spoke.Cluster

	jobs     map[string]string // by cluster and the beginning of the name of a Job, how it ends; Complete by default
	stuck    map[string]bool   // clusters that never complete a release
	silent   map[string]bool   // clusters whose agent answers nothing
	pending  map[string]bool   // clusters whose agent is about to act
	history  []string          // what began on the clusters, as "cluster what"
	admitted []string          // clusters in the order of their admission
	manager  *workManagers
	offline  bool                                    // the agents answer nothing
	bySets   bool                                    // the hub delivers actions by ManifestWorkReplicaSets
	spec     fleetv1beta1.ManagedClustersUpgradeSpec // as it was created

	invariants invariants.Fleet
}

func newFleet(tb testing.TB, clusters int, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *fleet {
	tb.Helper()
	f := &fleet{
		Harness: simulation.NewHarness(tb, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(tb, "../../../deploy/hub/crds")}), spokes: map[string]*spoke.Cluster{},
		jobs: map[string]string{}, stuck: map[string]bool{}, silent: map[string]bool{}, pending: map[string]bool{},
	}
	f.Program.Name, f.Program.OnCrash, f.Program.Controllers = "hub", nil, f.controllers
	f.EnableGarbageCollection()
	f.Observe(f.observe)
	f.manager = &workManagers{World: f.World, t: tb}
	f.Observe(f.manager.observe)
	var names []string
	for i := range clusters {
		name := fmt.Sprintf("c%d", i+1)
		names = append(names, name)
		f.spokes[name] = spoke.New(name, installed, f.Now())
		f.Must(f.User.Create(tb.Context(), &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		}))
		f.setAvailable(name, metav1.ConditionTrue)
	}
	f.selectClusters(names...)
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores"}}
	upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: target}
	for _, edit := range edits {
		edit(upgrade)
	}
	f.Create(upgrade)
	f.spec = upgrade.Spec
	f.bySets = upgrade.Annotations[byReplicaSetsAnnotation] != ""
	f.start(release{image: hubImage})
	return f
}

// release is a release of the hub.
type release struct {
	image string                              // of the Job that approves operators
	table func(engine.Runbook) engine.Runbook // nil for the table of the code
}

// start starts a hub; the one before has ended.
func (f *fleet) start(r release) {
	f.TB.Helper()
	f.release = r
	f.Begin()
}

func (f *fleet) controllers(env simulation.Env) ([]manager.Controller, error) {
	runs := &clusterupgraderun.Reconciler{Clock: env.Clock, Namespace: hubNamespace, Image: f.release.image, ReplicaSets: f.bySets}
	runs.ChangeTable(f.release.table)
	upgrades := &managedclustersupgrade.Reconciler{Clock: env.Clock, Image: f.release.image}
	return []manager.Controller{upgrades.Controller(), runs.Controller()}, nil
}

// setAvailable has a cluster report its release, and whether the hub can reach it.
func (f *fleet) setAvailable(name string, status metav1.ConditionStatus) {
	f.TB.Helper()
	managed := simulation.Get(f.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	managed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: installed}}
	managed.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Test", LastTransitionTime: metav1.NewTime(f.Now()),
	}}
	f.UpdateStatus(managed)
}

// setOffline disconnects all clusters, or connects them again.
func (f *fleet) setOffline(offline bool) {
	f.TB.Helper()
	f.offline = offline
	for name := range f.spokes {
		if offline {
			f.setAvailable(name, metav1.ConditionUnknown)
			continue
		}
		f.setAvailable(name, metav1.ConditionTrue)
		f.wake(name)
	}
}

// selectClusters has the Placement of the upgrade select the clusters.
func (f *fleet) selectClusters(names ...string) {
	f.TB.Helper()
	f.selectBy("all", names...)
}

// selectBy has a Placement select the clusters.
func (f *fleet) selectBy(by string, names ...string) {
	f.TB.Helper()
	placement := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: by}}
	if simulation.Find(f.Harness, client.ObjectKeyFromObject(placement), placement) == nil {
		f.Create(placement)
	}
	decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: by + "-decision-1", Labels: map[string]string{ocmv1beta1.PlacementLabel: by},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(placement, schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Kind: "Placement"})},
	}}
	for _, name := range names {
		decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: name})
	}
	f.Must(client.IgnoreNotFound(f.User.Delete(f.TB.Context(), decision.DeepCopy())))
	f.Must(f.Add(decision))
	placement.Status.NumberOfSelectedClusters = int32(len(names))
	placement.Status.Conditions = []metav1.Condition{{
		Type: ocmv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled", LastTransitionTime: metav1.NewTime(f.Now()),
	}}
	f.UpdateStatus(placement)
}

// observe checks the invariants of what is stored, and lets the agents answer works.
func (f *fleet) observe(change simulation.Change) {
	observeInvariants(f.World, &f.invariants, change)
	switch object := change.New.(type) {
	case *workv1.ManifestWork:
		if before, _ := change.Old.(*workv1.ManifestWork); change.Actor == "hub" && before != nil && !equality.Semantic.DeepEqual(before.Spec, object.Spec) &&
			before.Annotations[delivery.Annotation] == object.Annotations[delivery.Annotation] {
			f.Fail(fmt.Errorf("work %s/%s was rewritten", object.Namespace, object.Name))
		}
		if change.Actor != "agent" {
			f.wake(object.Namespace)
		}
	case *fleetv1alpha1.ClusterUpgradeRun:
		before, _ := change.Old.(*fleetv1alpha1.ClusterUpgradeRun)
		if invariants.Begins(before, object) && !slices.Contains(f.admitted, object.Namespace) {
			f.admitted = append(f.admitted, object.Namespace)
		}
		if err := f.invariants.AfterStop(f.upgrade(), before, object); err != nil && change.Actor == "hub" {
			f.Fail(err)
		}
	}
}

func (f *fleet) wake(name string) {
	if !f.pending[name] && !f.offline {
		f.pending[name] = true
		f.After(10*time.Second, func() { f.pending[name] = false; f.sync(name) })
	}
}

// change lets something happen on a cluster later.
func (f *fleet) change(d time.Duration, name string, do func()) {
	f.After(d, func() { do(); f.wake(name) })
}

// note records what begins on a cluster; it is an error if that comes before what must precede it.
func (f *fleet) note(name, what string) {
	line := name + " " + what
	if slices.Contains(f.history, line) {
		return
	}
	order := []string{"backup", "backup done", "upgrade", "upgrade done", "installplan", "installplan done", "check"}
	for _, before := range order[:max(0, slices.Index(order, what))] {
		skipped := strings.HasPrefix(before, "backup") && f.spec.PreUpgradeAction == nil || strings.HasPrefix(before, "installplan") && f.spec.OCPOperators == nil
		if !skipped && !slices.Contains(f.history, name+" "+before) {
			f.Fail(fmt.Errorf("%s: %s came before %s", name, what, before))
		}
	}
	f.history = append(f.history, line)
}

// sync lets the agent of a cluster answer each work.
func (f *fleet) sync(name string) {
	if f.offline || f.silent[name] {
		return
	}
	works := simulation.List(f.Harness, &workv1.ManifestWorkList{}, client.InNamespace(name))
	for i := range works.Items {
		f.Must(f.spokes[name].Answer(f.TB.Context(), f.Client("agent"), &works.Items[i], f.Now(), func(release string) {
			if release != "" {
				f.install(name, release)
			}
			f.runJobs(name)
		}))
	}
}

func (f *fleet) install(name, release string) {
	f.note(name, "upgrade")
	f.change(time.Minute, name, func() { f.spokes[name].Accept(release, f.Now()) })
	if !f.stuck[name] {
		f.change(40*time.Minute, name, func() {
			f.spokes[name].Complete(f.Now())
			f.note(name, "upgrade done")
		})
	}
}

func (f *fleet) runJobs(name string) {
	for _, job := range f.spokes[name].Objects("Job") {
		what, _, _ := strings.Cut(job.GetName(), "-")
		if slices.Contains(f.history, name+" "+what) {
			continue
		}
		f.note(name, what)
		end := f.jobs[name+" "+what]
		if end == "" {
			end = "Complete"
		}
		f.change(5*time.Minute, name, func() {
			f.spokes[name].EndJob(job, end, f.Now())
			if end == "Complete" {
				f.note(name, what+" done")
			}
		})
	}
}

func (f *fleet) upgrade() *fleetv1beta1.ManagedClustersUpgrade {
	f.TB.Helper()
	return simulation.Get(f.Harness, client.ObjectKey{Namespace: "fleet", Name: "stores"}, &fleetv1beta1.ManagedClustersUpgrade{})
}

// states returns the state of each run, and its reason if it has failed.
func (f *fleet) states() map[string]string {
	f.TB.Helper()
	runs := simulation.List(f.Harness, &fleetv1alpha1.ClusterUpgradeRunList{})
	states := map[string]string{}
	for i := range runs.Items {
		s := &runs.Items[i].Status
		states[runs.Items[i].Namespace] = string(s.State)
		if s.State == fleetv1alpha1.StateFailed {
			states[runs.Items[i].Namespace] = s.Reason
		}
	}
	return states
}

func (f *fleet) expectStates(want map[string]string) {
	f.TB.Helper()
	if diff := cmp.Diff(want, f.states()); diff != "" {
		f.TB.Errorf("states (-want +got):\n%s", diff)
	}
}

// actionWorks returns the clusters with a work of an action.
func (f *fleet) actionWorks(action delivery.Action) []string {
	f.TB.Helper()
	works := simulation.List(f.Harness, &workv1.ManifestWorkList{})
	var clusters []string
	for i := range works.Items {
		if works.Items[i].Name == delivery.ActionName(string(f.upgrade().UID), action) {
			clusters = append(clusters, works.Items[i].Namespace)
		}
	}
	slices.Sort(clusters)
	return clusters
}

func concurrency(n int32) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(n))
	}
}

// canary makes a cluster the canary, without a soak.
func canary(name string) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{
			ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"name": name}},
		}
	}
}

// What a cluster does with actions and operators.
func steps(name string, n int) []string {
	all := []string{"backup", "backup done", "upgrade", "upgrade done", "installplan", "installplan done", "check", "check done"}
	for i := range all {
		all[i] = name + " " + all[i]
	}
	return all[:n]
}

func (f *fleet) of(name string) []string {
	return slices.DeleteFunc(slices.Clone(f.history), func(line string) bool { return !strings.HasPrefix(line, name+" ") })
}

func TestSequence_1_pre_action_is_available_before_the_upgrade(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 1, actions, by)
		f.RunFor(4 * time.Minute)
		if f.spokes["c1"].Desired() != "" {
			t.Error("the upgrade is requested while the pre-action runs")
		}
		f.RunFor(5 * time.Minute)
		if f.spokes["c1"].Desired() != target {
			t.Error("the upgrade is not requested although the pre-action is available")
		}
	})
}

func TestSequence_2_degraded_pre_action_stops_no_other_cluster(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 3, actions, by)
		f.jobs["c1 backup"] = "Failed"
		f.RunFor(5 * time.Hour)
		f.expectStates(map[string]string{"c1": "PreActionDegraded", "c2": "Complete", "c3": "Complete"})
		if diff := cmp.Diff(steps("c1", 1), f.of("c1")); diff != "" {
			t.Errorf("the failed cluster (-want +got):\n%s", diff)
		}
	})
}

// expectActions upgrades two clusters, the second of which fails if stuck, one after the other, with an action.
// It checks on which clusters the works of the action are once the first one is complete, and that none is
// left once both are finished.
func expectActions(t *testing.T, action delivery.Action, stuck bool, want ...string) {
	t.Helper()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 2, actions, by)
		f.stuck["c2"] = stuck
		f.RunFor(80 * time.Minute)
		f.expectStates(map[string]string{"c1": "Complete", "c2": "PartialUpgrade"})
		if diff := cmp.Diff(want, f.actionWorks(action)); diff != "" {
			t.Errorf("works while a cluster is upgraded (-want +got):\n%s", diff)
		}
		f.RunFor(4 * time.Hour)
		last := "Complete"
		if stuck {
			last = "ClusterUpgradeTimedOut"
		}
		f.expectStates(map[string]string{"c1": "Complete", "c2": last})
		if left := f.actionWorks(action); len(left) > 0 {
			t.Errorf("works are left on %v", left)
		}
	})
}

func TestSequence_3_pre_action_is_deleted_after_all_clusters_are_finished(t *testing.T) {
	t.Parallel()
	expectActions(t, delivery.PreUpgrade, false, "c1", "c2")
}

func TestSequence_3_pre_action_is_deleted_after_the_last_cluster_has_failed(t *testing.T) {
	t.Parallel()
	expectActions(t, delivery.PreUpgrade, true, "c1", "c2")
}

func TestSequence_11_post_action_is_deleted_after_all_clusters_are_finished(t *testing.T) {
	t.Parallel()
	expectActions(t, delivery.PostUpgrade, false, "c1")
}

func TestSequence_11_post_action_is_deleted_after_the_last_cluster_has_failed(t *testing.T) {
	t.Parallel()
	expectActions(t, delivery.PostUpgrade, true, "c1")
}

func TestSequence_4_canaries_are_complete_first(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canary("c2"), concurrency(3))
	f.RunFor(70 * time.Minute) // upgraded after 42 minutes, soaked after 72
	f.expectStates(map[string]string{"c2": "PartialUpgrade"})
	f.RunFor(3 * time.Hour)
	f.expectStates(map[string]string{"c1": "Complete", "c2": "Complete", "c3": "Complete"})
	if f.admitted[0] != "c2" {
		t.Errorf("admitted %v", f.admitted)
	}
}

func TestSequence_5_failed_canary_stops_the_rollout(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, canary("c2"), concurrency(3))
	f.stuck["c2"] = true
	f.RunFor(10 * time.Hour)
	f.expectStates(map[string]string{"c2": "ClusterUpgradeTimedOut"})
	for _, name := range []string{"c1", "c3"} {
		if f.spokes[name].Desired() != "" {
			t.Errorf("%s is upgraded", name)
		}
	}
}

func TestSequence_6_operators_follow_the_platform(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 1, actions, operators, by)
		f.RunFor(3 * time.Hour)
		f.expectStates(map[string]string{"c1": "Complete"})
		if diff := cmp.Diff(steps("c1", 8), f.of("c1")); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestSequence_7_decisions_change(t *testing.T) {
	t.Parallel()
	for state, after := range map[string]time.Duration{"Initialized": 3 * time.Minute, "PartialUpgrade": 20 * time.Minute} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 3, actions)
			f.RunFor(after)
			f.expectStates(map[string]string{"c1": state})
			f.selectClusters("c3") // c1 is in flight, c2 has not started
			f.RunFor(5 * time.Hour)
			f.expectStates(map[string]string{"c1": "Complete", "c3": "Complete"})
			if f.spokes["c2"].Desired() != "" {
				t.Error("a deselected cluster that had not started is upgraded")
			}
		})
	}
}

// A cluster whose action runs when it is deselected goes on, one that has not begun gets no action, and one that
// joins gets both.
func TestSequence_7_decisions_change_while_an_action_runs(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 4, actions, by)
		f.selectClusters("all", "c1", "c2", "c3")
		f.RunFor(4 * time.Minute)
		if diff := cmp.Diff(steps("c1", 1), f.history); diff != "" {
			t.Errorf("before the decisions change (-want +got):\n%s", diff)
		}
		f.selectClusters("all", "c3", "c4")
		f.RunFor(6 * time.Hour)
		f.expectStates(map[string]string{"c1": "Complete", "c3": "Complete", "c4": "Complete"})
		for _, name := range []string{"c1", "c3", "c4"} {
			if diff := cmp.Diff(slices.Concat(steps(name, 4), steps(name, 8)[6:]), f.of(name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if began := f.of("c2"); len(began) > 0 {
			t.Errorf("a deselected cluster that had not started: %v", began)
		}
		if left := slices.Concat(f.actionWorks(delivery.PreUpgrade), f.actionWorks(delivery.PostUpgrade)); len(left) > 0 {
			t.Errorf("actions are left on %v", left)
		}
	})
}

func TestSequence_8_concurrency(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 7, concurrency(3), actions, by) // the invariants check the limit
		f.RunFor(10 * time.Minute)
		if diff := cmp.Diff([]string{"c1", "c2", "c3"}, slices.Sorted(maps.Keys(f.states()))); diff != "" {
			t.Errorf("admitted (-want +got):\n%s", diff)
		}
		f.RunFor(10 * time.Hour)
		if s := f.upgrade().Status.ClustersSummery; s.Complete != 7 {
			t.Errorf("%+v", s)
		}
	})
}

func TestSequence_9_post_action_follows_the_upgrade(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 1, actions, by)
		f.RunFor(30 * time.Minute)
		if works := f.actionWorks(delivery.PostUpgrade); len(works) > 0 {
			t.Error("the post-action is applied while the platform is upgraded")
		}
		f.RunFor(3 * time.Hour)
		if !slices.Contains(f.of("c1"), "c1 check done") {
			t.Errorf("the post-action has not run: %v", f.history)
		}
	})
}

func TestSequence_10_degraded_post_action_fails_the_cluster(t *testing.T) {
	t.Parallel()
	forDeliveries(t, func(t *testing.T, by func(*fleetv1beta1.ManagedClustersUpgrade)) {
		t.Helper()
		f := newFleet(t, 2, actions, by)
		f.jobs["c1 check"] = "Failed"
		f.RunFor(5 * time.Hour)
		f.expectStates(map[string]string{"c1": "PostActionDegraded", "c2": "Complete"})
		if !apimeta.IsStatusConditionTrue(f.upgrade().Status.Conditions, fleetv1beta1.ConditionFailed) {
			t.Error("the upgrade is not Failed")
		}
	})
}
