// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const target = "4.20.6"

// world is a hub with one cluster at 4.20.5.
type world struct {
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
	agents *Agents
	client client.Client
	run    *fleetv1alpha1.ClusterUpgradeRun
	mcu    *fleetv1beta1.ManagedClustersUpgrade
	key    client.ObjectKey
}

func newWorld(t *testing.T) *world {
	t.Helper()
	managed := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{DurationAnnotation: "20s"}}}
	managed.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: VersionClaim, Value: "4.20.5"}}
	w := &world{
		t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)),
		run: &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "run"}},
		mcu: &fleetv1beta1.ManagedClustersUpgrade{},
		key: client.ObjectKey{Namespace: "c", Name: delivery.UpgradeName("c")},
	}
	w.run.Spec.Attempt = 1
	w.run.Spec.ManagedClustersUpgrade.UID = "12345678-0000"
	w.run.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: target, Channel: "stable-4.20"}
	w.client = fake.NewClientBuilder().WithScheme(simulation.NewScheme()).
		WithStatusSubresource(&clusterv1.ManagedCluster{}, &workv1.ManifestWork{}).WithObjects(managed).Build()
	w.agents = &Agents{options: Options{Interval: time.Second, Clock: w.clock}, client: w.client, spokes: map[string]*cluster{}}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// deliver writes the work in the given form and generation.
func (w *world) deliver(form delivery.Form, generation int64) {
	w.t.Helper()
	work, err := delivery.UpgradeWork(w.run, w.mcu, form, w.clock.Now(), clusterstate.Release{})
	w.must(err)
	existing := &workv1.ManifestWork{}
	if err := w.client.Get(w.t.Context(), w.key, existing); err != nil {
		work.Generation = generation
		w.must(w.client.Create(w.t.Context(), work))
		return
	}
	merged := delivery.Merge(existing, work)
	merged.Generation = generation
	w.must(w.client.Update(w.t.Context(), merged))
}

// after lets d pass, handles the work, and returns the feedback.
func (w *world) after(d time.Duration) *delivery.Feedback {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	for range 3 { // the finalizer, then the status
		_, err := w.agents.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: w.key})
		w.must(err)
	}
	work := &workv1.ManifestWork{}
	if err := w.client.Get(w.t.Context(), w.key, work); err != nil {
		return &delivery.Feedback{}
	}
	return delivery.Read(work)
}

func (w *world) annotate(change func(map[string]string)) {
	w.t.Helper()
	cluster := &clusterv1.ManagedCluster{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Name: "c"}, cluster))
	change(cluster.Annotations)
	w.must(w.client.Update(w.t.Context(), cluster))
}

func (w *world) expect(f *delivery.Feedback, want delivery.Stage) {
	w.t.Helper()
	v := f.ClusterVersion()
	if got := v.Stage(delivery.TargetOf(w.run)); got != want || f.Applied != metav1.ConditionTrue || f.Available != metav1.ConditionTrue {
		w.t.Errorf("stage %s, want %s; applied %s, available %s, feedback %+v", got, want, f.Applied, f.Available, v)
	}
}

func TestAgents_upgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver(delivery.FormApply, 1)
	w.expect(w.after(0), delivery.StagePartial)
	w.expect(w.after(19*time.Second), delivery.StagePartial)
	f := w.after(time.Second)
	w.expect(f, delivery.StageCompleted)
	if v := f.ClusterVersion(); !v.IsObserved() {
		t.Error("the ClusterVersion is not observed")
	}
	cluster := &clusterv1.ManagedCluster{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Name: "c"}, cluster))
	if got := cluster.Status.ClusterClaims[0].Value; got != target {
		t.Errorf("the claim is %s", got)
	}
	before := &workv1.ManifestWork{}
	w.must(w.client.Get(t.Context(), w.key, before))
	w.after(time.Hour)
	after := &workv1.ManifestWork{}
	w.must(w.client.Get(t.Context(), w.key, after))
	if before.ResourceVersion != after.ResourceVersion {
		t.Error("the status was written although nothing has changed")
	}
}

func TestAgents_failure_and_repair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.annotate(func(a map[string]string) { a[FailsAnnotation] = "etcd is degraded" })
	w.deliver(delivery.FormApply, 1)
	w.after(0)
	f := w.after(time.Hour)
	w.expect(f, delivery.StagePartial)
	if failing := f.ClusterVersion().Failing; !failing.IsTrue() || failing.Message != "etcd is degraded" {
		t.Errorf("Failing: %+v", failing)
	}
	w.annotate(func(a map[string]string) { delete(a, FailsAnnotation) })
	w.expect(w.after(time.Second), delivery.StageCompleted)
}

func TestAgents_stuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.annotate(func(a map[string]string) { a[HangsAnnotation] = "" })
	w.deliver(delivery.FormApply, 1)
	w.after(0)
	f := w.after(time.Hour)
	w.expect(f, delivery.StagePartial)
	if v := f.ClusterVersion(); v.Failing.IsTrue() {
		t.Error("an upgrade that hangs fails")
	}
	w.annotate(func(a map[string]string) { a[UnreachableAnnotation] = "" })
	w.deliver(delivery.FormReadOnly, 2)
	if f := w.after(time.Hour); f.Applied != metav1.ConditionUnknown {
		t.Errorf("an agent that is unreachable reports Applied=%s", f.Applied)
	}
}

func TestAgents_readOnly_and_deletion_keep_the_ClusterVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver(delivery.FormApply, 1)
	w.after(0)
	w.deliver(delivery.FormReadOnly, 2)
	w.expect(w.after(time.Minute), delivery.StageCompleted)
	work := &workv1.ManifestWork{}
	w.must(w.client.Get(t.Context(), w.key, work))
	w.must(w.client.Delete(t.Context(), work))
	w.after(0)
	if err := w.client.Get(t.Context(), w.key, work); err == nil {
		t.Error("the work is still there")
	}
	if got, _, _ := w.agents.spokes["c"].newest(); got != target {
		t.Errorf("the cluster has %q", got)
	}
}

// Fields left by an earlier update by another client stay.
func TestAgents_withdrawal_removes_the_target_only(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deliver(delivery.FormApply, 1)
	w.after(0)
	w.deliver(delivery.FormWithdraw, 2)
	w.after(0)
	spec, _ := w.agents.spokes["c"].Version().Object["spec"].(object)
	if diff := cmp.Diff(object{"force": false, "architecture": ""}, spec["desiredUpdate"]); diff != "" || spec["channel"] != "stable-4.20" || spec["clusterID"] == nil {
		t.Errorf("spec %v (-want +got):\n%s", spec, diff)
	}
}

// A version with the image of the installed release does not request an update. The cluster version
// operator behaves the same way.
func TestAgents_compare_the_image(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 2, 22, 0, 0, 0, time.UTC)
	c := newCluster("c", "4.20.5", now)
	for _, tc := range []struct{ image, want string }{{spoke.Image("4.20.5"), "4.20.5"}, {"", target}} {
		spec, _ := c.Version().Object["spec"].(object)
		spec["desiredUpdate"] = object{"version": target, "image": tc.image}
		c.advance(&script{duration: time.Minute}, now)
		if got, _, _ := c.newest(); got != tc.want {
			t.Errorf("image %q: the cluster is at %s, want %s", tc.image, got, tc.want)
		}
	}
}

// The agent owns the ClusterVersion if the orphaning rule is missing from the work, until it
// applies a version of the work with the rule.
func TestAgents_a_work_without_the_orphaning_rule_deletes_the_ClusterVersion(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"edited": false, "restored before its deletion, and not applied": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.deliver(delivery.FormApply, 1)
			work := &workv1.ManifestWork{}
			w.must(w.client.Get(t.Context(), w.key, work))
			rule := work.Spec.DeleteOption
			work.Spec.DeleteOption = nil
			w.must(w.client.Update(t.Context(), work))
			w.after(time.Minute)
			w.must(w.client.Get(t.Context(), w.key, work))
			if restored {
				work.Spec.DeleteOption = rule
				w.must(w.client.Update(t.Context(), work))
			}
			w.must(w.client.Delete(t.Context(), work))
			w.after(0)
			if version := w.agents.spokes["c"].Version(); version != nil {
				t.Errorf("the cluster has %v", version)
			}
		})
	}
}

func TestAgents_upgradeConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mcu.Spec.UpgradeConfig = &fleetv1beta1.UpgradeConfigTemplate{Type: "OSD"}
	w.deliver(delivery.FormApply, 1)
	first, then := w.after(0), w.after(time.Minute)
	for _, f := range []*delivery.Feedback{first, then} {
		if f.Applied != metav1.ConditionTrue || f.Available != metav1.ConditionTrue {
			t.Errorf("feedback %+v", f)
		}
	}
	a, b := first.UpgradeConfig(), then.UpgradeConfig()
	if !a.Phase.Is("Upgrading") || !b.Phase.Is("Upgraded") {
		t.Errorf("phases %+v and %+v", a.Phase, b.Phase)
	}
}
