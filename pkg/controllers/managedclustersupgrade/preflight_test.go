// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// dryRunWorld is a hub with a dry run. An agent answers the works of each cluster, except for the silent ones.
type dryRunWorld struct {
	*world
	spokes map[string]*spoke.Cluster
	silent map[string]bool
}

func dryRun(u *fleetv1beta1.ManagedClustersUpgrade) {
	u.Spec.DryRun = true
	u.Spec.ClusterVersion.Version = "4.21.0"
}

// newDryRun returns a world of reachable clusters at 4.20.5, with an offer of 4.21.0.
func newDryRun(t *testing.T, clusters int, edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *dryRunWorld {
	t.Helper()
	w := &dryRunWorld{spokes: map[string]*spoke.Cluster{}, silent: map[string]bool{}}
	w.world = newWorld(t, clusters, append([]func(*fleetv1beta1.ManagedClustersUpgrade){dryRun}, edits...)...)
	for i := range clusters {
		name := fmt.Sprintf("c%04d", i)
		w.setReachable(name, metav1.ConditionTrue)
		w.spokes[name] = spoke.New(name, "4.20.5", w.Now())
		w.offer(name, "4.21.0")
	}
	w.Observe(func(change simulation.Change) {
		if work, is := change.New.(*workv1.ManifestWork); is && change.Actor != "agent" {
			w.After(15*time.Second, func() { w.answer(client.ObjectKeyFromObject(work)) })
		}
	})
	return w
}

func (w *world) setReachable(name string, status metav1.ConditionStatus) {
	cluster := simulation.Get(w.Harness, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "Agent", LastTransitionTime: metav1.NewTime(w.Now())}}
	w.UpdateStatus(cluster)
}

// offer sets the releases that are offered to a cluster.
func (w *dryRunWorld) offer(name string, releases ...string) {
	var offered []any
	for _, release := range releases {
		offered = append(offered, map[string]any{"version": release, "image": spoke.Image(release)})
	}
	status, _ := w.spokes[name].Version().Object["status"].(map[string]any)
	status["availableUpdates"] = offered
}

// answer lets the agent apply or delete a work.
func (w *dryRunWorld) answer(key client.ObjectKey) {
	if w.silent[key.Namespace] {
		return
	}
	if work := simulation.Find(w.Harness, key, &workv1.ManifestWork{}); work != nil {
		w.Must(w.spokes[key.Namespace].Answer(w.TB.Context(), w.Client("agent"), work, w.Now(), nil))
	}
}

func (w *dryRunWorld) works() []workv1.ManifestWork {
	list := simulation.List(w.Harness, &workv1.ManifestWorkList{})
	return list.Items
}

// causes returns the causes of the status, one per line.
func (w *dryRunWorld) causes() string {
	var lines []string
	for _, c := range w.get().Status.Causes {
		lines = append(lines, fmt.Sprintf("%s %s %d: %s", c.Type, c.Reason, c.Count, strings.Join(c.Clusters, ",")))
	}
	return strings.Join(lines, "\n")
}

// expectUntouched checks that a dry run has left nothing on any cluster and on the hub.
func (w *dryRunWorld) expectUntouched() {
	w.TB.Helper()
	if works := w.works(); len(works) > 0 {
		w.TB.Errorf("%d works are left, one is %s", len(works), works[0].Name)
	}
	for name, cluster := range w.spokes {
		if cluster.Version() == nil || cluster.Desired() != "" || len(cluster.Objects("ClusterRole")) > 0 {
			w.TB.Errorf("cluster %s has ClusterVersion %v and ClusterRoles %v", name, cluster.Version(), cluster.Objects("ClusterRole"))
		}
	}
}

// A work of an earlier release of the hub does not report whether the cluster is held: it is created again.
func TestDryRun_whose_work_is_of_an_earlier_hub(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 1)
	w.spokes["c0000"].Version().SetAnnotations(map[string]string{upgradev1alpha1.HoldAnnotation: "migration"})
	w.silent["c0000"] = true
	w.RunFor(30 * time.Second)
	work := w.works()[0]
	work.Annotations[delivery.Annotation] = "1/ReadOnly"
	paths := &work.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
	*paths = slices.DeleteFunc(*paths, func(path workv1.JsonPath) bool { return path.Name == "hold" })
	w.Update(&work)
	w.silent["c0000"] = false
	w.RunFor(10 * time.Minute)
	if got := w.causes(); got != "Blocked Held 1: c0000" {
		t.Errorf("causes %q", got)
	}
}

func TestDryRun_groups_obstacles_by_cause(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 12)
	w.offer("c0001")
	w.offer("c0002")
	for _, name := range []string{"c0003", "c0004"} {
		w.spokes[name].SetCondition(w.spokes[name].Version(), "Upgradeable", "False", "AdminAckRequired", "APIs are removed", w.Now())
	}
	w.setReachable("c0005", metav1.ConditionUnknown)
	w.claim("c0006", "version.openshift.io", "4.21.1")
	w.claim("c0007", "controlplanetopology.openshift.io", "External")
	w.claim("c0008", "version.openshift.io", "4.21.0")
	w.silent["c0009"] = true
	w.editCluster("c0010", func(c *clusterv1.ManagedCluster) {
		c.Annotations = map[string]string{"upgrade.managed.openshift.io/hold": "migration"}
	})
	other := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "c0011", Name: "other"}}
	other.Spec = fleetv1alpha1.ClusterUpgradeRunSpec{
		ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "other", UID: "other"}, Attempt: 1, AdmissionTime: metav1.NewTime(w.Now()),
	}
	w.Create(other)
	w.RunFor(time.Minute)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "an obstacle was found") {
		t.Errorf("after a minute: %+v", c)
	}
	w.RunFor(2 * time.Minute)
	w.silent["c0009"] = false
	w.answer(client.ObjectKey{Namespace: "c0009", Name: "c0009-upgrade-preflight"})
	w.RunFor(time.Minute)
	want := `Blocked AdminAckRequired 2: c0003,c0004
Blocked NotOffered 2: c0001,c0002
Blocked Held 1: c0010
Blocked HostedControlPlane 1: c0007
Blocked LockedBy 1: c0011
Blocked NewerVersionInstalled 1: c0006
Blocked NoFeedback 1: c0009
Blocked Unreachable 1: c0005`
	if diff := cmp.Diff(want, w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionFalse || c.Reason != "AdminAckRequired" || !strings.Contains(c.Message, "APIs are removed") {
		t.Errorf("condition PreflightPassed: %+v", c)
	}
	w.expect("12/0/0/0/0/12", fleetv1beta1.ReasonDryRun)
	w.expectUntouched()
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("%d runs", len(runs))
	}
	if n := w.Count("create ManifestWork"); n != 6 {
		t.Errorf("%d works were created, want one for each cluster that needs it", n)
	}
	w.Requests = nil
	w.RunFor(20 * time.Minute)
	checks := w.Count("create ManifestWork")
	published := w.Count("patch ManagedClustersUpgrade/status") // c0009 has answered
	if others := len(w.Requests) - checks - published - w.Count("delete ManifestWork"); others > 0 || published != 1 || checks < 10 || checks > 20 {
		t.Errorf("want 10 to 20 further checks of the five clusters that a work blocks, and the result of one: %q", w.Requests)
	}
	w.expectUntouched()
}

// A remedy is observed, although nothing on the hub changes.
func TestDryRun_observes_remedies(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 3)
	w.offer("c0001")
	set := func(status string) {
		w.spokes["c0002"].SetCondition(w.spokes["c0002"].Version(), "Upgradeable", status, "AdminAckRequired", "APIs are removed", w.Now())
	}
	set("False")
	w.RunFor(2 * time.Minute)
	if diff := cmp.Diff("Blocked AdminAckRequired 1: c0002\nBlocked NotOffered 1: c0001", w.causes()); diff != "" {
		t.Fatalf("causes (-want +got):\n%s", diff)
	}
	w.offer("c0001", "4.21.0")
	set("True")
	w.Observe(func(simulation.Change) {
		if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status == metav1.ConditionUnknown {
			t.Error("what was known is lost during another check")
		}
	})
	w.RunFor(recheckInterval + time.Minute)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionTrue {
		t.Errorf("condition PreflightPassed: %+v", c)
	}
	w.expectUntouched()
}

func TestDryRun_passes_and_the_upgrade_begins(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 2, concurrency(2))
	w.RunFor(10 * time.Second)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionUnknown {
		t.Errorf("before the agents have answered: %+v", c)
	}
	w.RunFor(time.Minute)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionTrue {
		t.Errorf("after they have answered: %+v", c)
	}
	w.expectUntouched()
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun = false })
	w.RunFor(time.Minute)
	w.expect("2/2/0/0/0/0", fleetv1beta1.ReasonFinished)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Type != "" {
		t.Errorf("after the dry run: %+v", c)
	}
}

func TestDryRun_of_claims_writes_nothing(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 3, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.ClaimsOnly = true })
	w.claim("c0000", "version.openshift.io", "4.20.5")
	w.claim("c0001", "version.openshift.io", "4.20.5")
	w.RunFor(time.Minute)
	if diff := cmp.Diff("Blocked VersionUnknown 1: c0002", w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	w.claim("c0002", "version.openshift.io", "4.20.5")
	w.RunFor(time.Minute)
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionUnknown || !strings.Contains(c.Message, "do not show whether the release is offered") {
		t.Errorf("condition PreflightPassed: %+v", c)
	}
	if n := w.Count("create ManifestWork"); n != 0 {
		t.Errorf("%d works were created", n)
	}
}

func TestDryRun_checks_in_batches(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, maxPreflights+30)
	w.silent["c0003"] = true
	w.RunFor(5 * time.Second)
	if n := len(w.works()); n != maxPreflights {
		t.Errorf("%d works at a time, want %d", n, maxPreflights)
	}
	w.RunFor(4 * time.Minute)
	if diff := cmp.Diff("Blocked NoFeedback 1: c0003", w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if n := w.Count("create ManifestWork"); n != maxPreflights+30 {
		t.Errorf("%d works were created", n)
	}
}

func TestDryRun_ends_in_the_middle(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dryRunWorld){
		"dryRun is false": func(w *dryRunWorld) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun, u.Spec.Paused = false, true })
		},
		"cancelled": func(w *dryRunWorld) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Cancelled = true })
		},
		"deleted": func(w *dryRunWorld) { w.Must(w.User.Delete(w.TB.Context(), w.get())) },
		"another process ends it": func(w *dryRunWorld) {
			w.Process.Kill()
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun, u.Spec.Paused = false, true })
			w.Begin()
		},
		"deselected": func(w *dryRunWorld) {
			for name := range w.spokes {
				w.silent[name] = true
				w.editCluster(name, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDryRun(t, 3)
			w.RunFor(5 * time.Second)
			if len(w.works()) != 3 {
				t.Fatalf("%d works", len(w.works()))
			}
			end(w)
			w.RunFor(5 * time.Minute)
			w.expectUntouched()
		})
	}
}

// The API server creates a work for a former leader, after the upgrade was deleted.
func TestDryRun_work_of_an_upgrade_that_is_gone(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"the process goes on": false, "another process starts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDryRun(t, 1)
			w.RunFor(5 * time.Second)
			late := w.works()[0]
			w.Delete(w.get())
			w.RunFor(5 * time.Minute)
			w.expectUntouched()
			late.ObjectMeta = metav1.ObjectMeta{Namespace: late.Namespace, Name: late.Name, Labels: late.Labels, Annotations: late.Annotations}
			if restart {
				w.Process.Kill()
			}
			w.Create(&late)
			if restart {
				w.Begin()
			}
			w.RunFor(5 * time.Minute)
			w.expectUntouched()
		})
	}
}

func TestDryRun_checks_another_target_again(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 2)
	w.RunFor(5 * time.Second)
	w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.ClusterVersion.Version = "4.21.1" })
	w.RunFor(2 * time.Minute)
	if diff := cmp.Diff("Blocked NotOffered 2: c0000,c0001", w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	w.expectUntouched()
}

// dropDeleteOption removes the rule that keeps the ClusterVersion from the first work.
func (w *dryRunWorld) dropDeleteOption() client.ObjectKey {
	w.TB.Helper()
	work := w.works()[0]
	work.Spec.DeleteOption = nil
	w.Update(&work)
	return client.ObjectKeyFromObject(&work)
}

// A user may remove the rule that keeps the ClusterVersion. The work is deleted once the agent has applied its repair,
// whatever ends the dry run in the meantime.
func TestDryRun_repairs_an_edited_work(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*dryRunWorld){
		"passed": func(*dryRunWorld) {},
		"dryRun is false": func(w *dryRunWorld) {
			w.edit(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.DryRun, u.Spec.Paused = false, true })
		},
		"deleted": func(w *dryRunWorld) { w.Must(w.User.Delete(w.TB.Context(), w.get())) },
		"deselected": func(w *dryRunWorld) {
			w.editCluster("c0000", func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDryRun(t, 1)
			w.RunFor(5 * time.Second)
			work := w.dropDeleteOption()
			w.answer(work) // the agent owns the ClusterVersion
			w.silent["c0000"] = true
			w.RunFor(10 * time.Second)
			end(w)
			w.RunFor(5 * time.Minute)
			works := w.works()
			if len(works) != 1 || !works[0].DeletionTimestamp.IsZero() || !delivery.KeepsClusterVersion(&works[0]) {
				t.Fatalf("%d works before the agent applied the repair, want one that is repaired and not deleted", len(works))
			}
			w.silent["c0000"] = false
			w.answer(work)
			w.RunFor(2 * time.Minute)
			w.expectUntouched()
		})
	}
}

// The agent of a cluster that has left the hub applies no repair.
func TestDryRun_removes_an_edited_work_of_a_detached_cluster(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 1)
	w.RunFor(5 * time.Second)
	w.dropDeleteOption()
	w.silent["c0000"] = true
	w.Delete(w.get())
	w.RunFor(time.Minute)
	if c := w.condition(fleetv1beta1.ConditionAdmitting); c.Reason != fleetv1beta1.ReasonDeleting || !strings.Contains(c.Message, "c0000") {
		t.Errorf("condition Admitting: %+v", c)
	}
	w.Delete(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c0000"}})
	w.RunFor(maxRequeue + time.Minute)
	if works := w.works(); len(works) != 0 {
		t.Errorf("%d works are left", len(works))
	}
}

func faultyDryRun(t *testing.T, plan simulation.FaultPlan) {
	t.Helper()
	w := newDryRun(t, 3)
	w.Writes = plan
	w.offer("c0001")
	w.RunFor(10 * time.Minute)
	if diff := cmp.Diff("Blocked NotOffered 1: c0001", w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	w.expectUntouched()
}

func TestDryRun_with_a_crash_at_every_write(t *testing.T) {
	t.Parallel()
	simulation.EachFault(t, 6, faultyDryRun)
}

// A work edited right before its deletion is repaired: nothing may delete the ClusterVersion.
func TestDryRun_work_that_is_edited_before_its_deletion(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, 1)
	edited := false
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Verb == "delete" && r.Kind == "ManifestWork" && !edited {
			edited = true
			w.dropDeleteOption()
		}
		return simulation.Fault{}
	}
	w.Observe(func(change simulation.Change) {
		work, is := change.Old.(*workv1.ManifestWork)
		deleted := change.New == nil || change.New.GetDeletionTimestamp() != nil
		if is && change.Actor == "hub" && deleted && !delivery.KeepsClusterVersion(work) {
			t.Error("a work that deletes the ClusterVersion was deleted")
		}
	})
	w.RunFor(3 * time.Minute)
	if !edited {
		t.Error("no work was deleted")
	}
	w.expectUntouched()
}

// Clusters that are deselected before they have answered leave room for others.
func TestDryRun_checks_others_after_clusters_are_deselected(t *testing.T) {
	t.Parallel()
	w := newDryRun(t, maxPreflights+10)
	for i := range maxPreflights {
		w.silent[fmt.Sprintf("c%04d", i)] = true
	}
	w.RunFor(5 * time.Second)
	w.offer(fmt.Sprintf("c%04d", maxPreflights))
	for _, work := range w.works() {
		w.editCluster(work.Namespace, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "selected") })
	}
	w.RunFor(5 * time.Minute)
	if diff := cmp.Diff(fmt.Sprintf("Blocked NotOffered 1: c%04d", maxPreflights), w.causes()); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if c := w.condition(fleetv1beta1.ConditionPreflightPassed); c.Status != metav1.ConditionFalse {
		t.Errorf("condition PreflightPassed: %+v", c)
	}
}
