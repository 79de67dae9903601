// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const inWorker = "MachineConfigPool/worker/Node/"

func TestNodes(t *testing.T) {
	t.Parallel()
	newWorker := rendered("worker", newRelease)
	cases := map[string]struct {
		change func(*cluster)
		want   []string
	}{
		"no node is being updated": {func(*cluster) {}, nil},
		"draining": {func(c *cluster) { c.drain("worker", "worker-0", time.Minute) }, []string{
			"status NodeDraining/" + inWorker + "worker-0",
		}},
		"drained": {func(c *cluster) {
			c.drain("worker", "worker-0", time.Minute)
			c.annotate("worker-0", "lastAppliedDrain", "drain-"+newWorker)
		}, []string{"status NodeUpdating/" + inWorker + "worker-0"}},
		"rebooting, as the daemon reports": {func(c *cluster) {
			c.drain("worker", "worker-0", time.Minute)
			c.annotate("worker-0", "lastAppliedDrain", "drain-"+newWorker, "state", "Rebooting")
		}, []string{"status NodeRebooting/" + inWorker + "worker-0"}},
		"rebooting, as the kubelet's silence shows": {func(c *cluster) {
			c.drain("worker", "worker-0", time.Minute)
			c.annotate("worker-0", "lastAppliedDrain", "drain-"+newWorker)
			c.condition("worker-0", corev1.NodeReady, corev1.ConditionUnknown, time.Minute)
		}, []string{"status NodeRebooting/" + inWorker + "worker-0"}},
		"rebooted, and not uncordoned": {func(c *cluster) {
			c.release()
			c.update("worker", "worker-0")
			c.annotate("worker-0", "lastAppliedDrain", "drain-"+newWorker)
		}, []string{"status NodeUpdating/" + inWorker + "worker-0"}},
		"updated":            {func(c *cluster) { c.release(); c.update("worker", "worker-0") }, nil},
		"control plane node": {func(c *cluster) { c.drain("master", "master-0", time.Minute) }, []string{"status NodeDraining/Node/master-0"}},
		"custom pool": {func(c *cluster) {
			c.addPool("infra")
			c.addNode("infra", "infra-0", "worker")
			c.drain("infra", "infra-0", time.Minute)
		}, []string{"status NodeDraining/MachineConfigPool/infra/Node/infra-0"}},
		"rollout of a configuration that changes no version": {func(c *cluster) {
			c.complete()
			for node := range c.nodes {
				c.update(strings.Split(node, "-")[0], node)
			}
			c.addConfig("rendered-worker-kubelet", newRelease, time.Minute)
			c.pools["worker"].Spec.Configuration.Name = "rendered-worker-kubelet"
			c.annotate("worker-0", "desiredConfig", "rendered-worker-kubelet", "state", "Working", "desiredDrain", "drain-rendered-worker-kubelet")
			c.cordon("worker-0", time.Minute)
		}, nil},
		"migration to another image of the version": {func(c *cluster) {
			c.version.Status.History[1].Version = newRelease
			c.configs[rendered("worker", oldRelease)].Annotations[mco+"release-image-version"] = newRelease
			c.drain("worker", "worker-0", time.Minute)
		}, []string{"status NodeDraining/" + inWorker + "worker-0"}},

		"degraded": {func(c *cluster) { c.annotate("worker-0", "state", "Degraded", "reason", "disk is full") }, []string{
			"warning NodeDegraded/" + inWorker + "worker-0",
		}},
		"degraded without a reason":       {func(c *cluster) { c.annotate("worker-0", "state", "Degraded") }, []string{"warning NodeDegraded/" + inWorker + "worker-0"}},
		"unreconcilable without a reason": {func(c *cluster) { c.annotate("worker-0", "state", "Unreconcilable") }, []string{"warning NodeUnreconcilable/" + inWorker + "worker-0"}},

		"not ready for 10 minutes":   {func(c *cluster) { c.condition("worker-0", corev1.NodeReady, "False", 10*time.Minute) }, nil},
		"not ready for more than 10": {func(c *cluster) { c.condition("worker-0", corev1.NodeReady, "False", 11*time.Minute) }, []string{"warning NodeNotReady/" + inWorker + "worker-0"}},
		"not known to be ready":      {func(c *cluster) { c.condition("worker-0", corev1.NodeReady, "Unknown", 11*time.Minute) }, []string{"warning NodeNotReady/" + inWorker + "worker-0"}},
		"without conditions":         {func(c *cluster) { c.nodes["worker-0"].Status.Conditions = nil }, []string{"warning NodeNotReady/" + inWorker + "worker-0"}},
		"new, without conditions": {func(c *cluster) {
			c.nodes["worker-0"].Status.Conditions, c.nodes["worker-0"].CreationTimestamp = nil, ago(time.Minute)
		}, nil},
		"not ready since the future":       {func(c *cluster) { c.condition("worker-0", corev1.NodeReady, "False", -time.Hour) }, []string{"warning NodeNotReady/" + inWorker + "worker-0"}},
		"disk pressure for a minute":       {func(c *cluster) { c.condition("worker-0", corev1.NodeDiskPressure, "True", time.Minute) }, nil},
		"disk pressure for more than one":  {func(c *cluster) { c.condition("worker-0", corev1.NodeDiskPressure, "True", 2*time.Minute) }, []string{"warning NodeDiskPressure/" + inWorker + "worker-0"}},
		"network unavailable for a minute": {func(c *cluster) { c.condition("worker-0", corev1.NodeNetworkUnavailable, "True", time.Minute) }, nil},
		"network unavailable for longer":   {func(c *cluster) { c.condition("worker-0", corev1.NodeNetworkUnavailable, "True", 2*time.Minute) }, []string{"warning NodeNetworkUnavailable/" + inWorker + "worker-0"}},
		"disk pressure unknown":            {func(c *cluster) { c.condition("worker-0", corev1.NodeDiskPressure, "Unknown", time.Hour) }, nil},
		"a node in no pool that is not ready": {func(c *cluster) {
			c.addNode("other", "other-0")
			c.condition("other-0", corev1.NodeReady, "False", time.Hour)
		}, []string{"warning NodeNotReady/Node/other-0"}},
		"a Windows node that is not ready": {func(c *cluster) {
			c.nodes["worker-0"].Labels[corev1.LabelOSStable] = "windows"
			c.condition("worker-0", corev1.NodeReady, "False", time.Hour)
		}, []string{"warning NodeNotReady/Node/worker-0"}},

		"paused pool with outdated nodes":    {func(c *cluster) { c.pools["worker"].Spec.Paused = true }, []string{"warning PoolPaused/MachineConfigPool/worker"}},
		"paused pool of the control plane":   {func(c *cluster) { c.pools["master"].Spec.Paused = true }, []string{"warning PoolPaused/MachineConfigPool/master"}},
		"paused pool without outdated nodes": {func(c *cluster) { c.complete(); updateAll(c); c.pools["worker"].Spec.Paused = true }, nil},
		"paused pool without nodes":          {func(c *cluster) { c.addPool("empty"); c.pools["empty"].Spec.Paused = true }, nil},
		"pool that an UpgradeJob delays": {func(c *cluster) {
			c.pools["worker"].Spec.Paused = true
			mark := clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1, ReleaseAfter: now.Add(time.Hour), ReleaseBefore: now.Add(2 * time.Hour)}
			c.pools["worker"].Annotations = map[string]string{clusterstate.AnnotationPausedBy: mark.String()}
		}, []string{"info PoolDelayed/MachineConfigPool/worker"}},
		"pool that an UpgradeJob did not unpause in time": {func(c *cluster) {
			c.pools["worker"].Spec.Paused = true
			mark := clusterstate.PoolMark{OwnerUID: "uid", Attempt: 1, ReleaseAfter: now.Add(-2 * time.Hour), ReleaseBefore: now.Add(-time.Hour)}
			c.pools["worker"].Annotations = map[string]string{clusterstate.AnnotationPausedBy: mark.String()}
		}, []string{"warning PoolPaused/MachineConfigPool/worker"}},
		"degraded pool without a reason": {func(c *cluster) {
			c.pools["worker"].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue}}
		}, []string{"error PoolDegraded/MachineConfigPool/worker"}},

		"single node": {func(c *cluster) {
			clear(c.nodes)
			c.addNode("master", "sno", "worker")
			c.drain("master", "sno", time.Minute)
		}, []string{"status NodeDraining/Node/sno"}},
		"compact cluster": {func(c *cluster) {
			clear(c.nodes)
			for _, name := range []string{"a", "b", "c"} {
				c.addNode("master", name, "worker")
			}
			c.drain("master", "b", time.Minute)
		}, []string{"status NodeDraining/Node/b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			if diff := cmp.Diff(tc.want, found(t, checks.InformerNodes, c.facts(t))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func updateAll(c *cluster) {
	for node := range c.nodes {
		c.update(strings.Split(node, "-")[0], node)
	}
}

func TestNodes_explains_what_holds_a_drain(t *testing.T) {
	t.Parallel()
	const onNode = "/Node/worker-0"
	cases := map[string]struct {
		change func(*cluster)
		want   []string
	}{
		"a short drain": {func(c *cluster) {
			c.drain("worker", "worker-0", 9*time.Minute)
			c.addPod("api-1", "api", "worker-0")
			c.addPDB("shop", "api", "api", 0)
		}, nil},
		"a budget that allows no disruption": {func(c *cluster) {
			c.addPod("api-1", "api", "worker-0")
			c.addPDB("shop", "api", "api", 0)
		}, []string{"PodHeldByBudget/MachineConfigPool/worker/PodDisruptionBudget/shop/api/Pod/shop/api-1" + onNode}},
		"a budget that allows one": {func(c *cluster) {
			c.addPod("api-1", "api", "worker-0")
			c.addPDB("shop", "api", "api", 1)
		}, []string{"PodNotEvicted/MachineConfigPool/worker/Pod/shop/api-1" + onNode}},
		"two budgets, which the Eviction API refuses": {func(c *cluster) {
			c.addPod("api-1", "api", "worker-0")
			c.addPDB("shop", "a", "api", 1)
			c.addPDB("shop", "b", "api", 1)
		}, []string{"PodSelectedByBudgets/MachineConfigPool/worker/PodDisruptionBudget/shop/a/PodDisruptionBudget/shop/b/Pod/shop/api-1" + onNode}},
		"a budget of another namespace": {func(c *cluster) {
			c.addPod("api-1", "api", "worker-0")
			c.addPDB("other", "api", "api", 0)
		}, []string{"PodNotEvicted/MachineConfigPool/worker/Pod/shop/api-1" + onNode}},
		"a pod that terminates": {func(c *cluster) {
			pod := c.addPod("api-1", "api", "worker-0")
			pod.DeletionTimestamp, pod.Finalizers, pod.DeletionGracePeriodSeconds = new(ago(time.Minute)), []string{"example.com/f"}, new(int64(30))
		}, []string{"PodTerminating/MachineConfigPool/worker/Pod/shop/api-1" + onNode}},
		"a pod that finalizers keep": {func(c *cluster) {
			pod := c.addPod("api-1", "api", "worker-0")
			pod.DeletionTimestamp, pod.Finalizers, pod.DeletionGracePeriodSeconds = new(ago(time.Minute)), []string{"example.com/f"}, new(int64(0))
		}, []string{"PodKeptByFinalizers/MachineConfigPool/worker/Pod/shop/api-1" + onNode}},
		"a pod of a DaemonSet": {func(c *cluster) {
			c.addPod("agent", "agent", "worker-0").OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Controller: new(true)}}
		}, nil},
		"a pod on another node": {func(c *cluster) { c.addPod("api-1", "api", "worker-1") }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.drain("worker", "worker-0", 11*time.Minute)
			tc.change(c)
			var want []string
			for _, uid := range tc.want {
				want = append(want, "warning "+uid)
			}
			got := found(t, checks.InformerNodes, c.facts(t))
			if len(got) == 0 || got[0] != "status NodeDraining/"+inWorker+"worker-0" {
				t.Fatalf("the drain is not reported: %q", got)
			}
			if diff := cmp.Diff(want, append([]string(nil), got[1:]...)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodes_degraded_pool_is_caused_by_its_nodes(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.annotate("worker-1", "state", "Degraded")
	c.condition("worker-2", corev1.NodeReady, "False", time.Hour) // unrelated to the degraded pool
	c.pools["worker"].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue}}
	all := find(t, checks.InformerNodes, c.facts(t))
	if len(all) != 3 {
		t.Fatalf("got %v", all)
	}
	if diff := cmp.Diff([]string{"NodeDegraded/" + inWorker + "worker-1"}, all[2].CausedBy); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	for _, f := range all {
		if f.Description == "" || f.Scope != checks.ScopeWorkerPool {
			t.Errorf("finding %s: scope %s, description %q", f.UID(), f.Scope, f.Description)
		}
	}
}

// An informer finds nothing if the required facts are missing.
func TestInformers_find_nothing_in_missing_facts(t *testing.T) {
	t.Parallel()
	forbidden := func(sources ...checks.FactSource) map[checks.FactSource]checks.Missing {
		all := map[checks.FactSource]checks.Missing{}
		for _, source := range sources {
			all[source] = checks.Missing{Reason: checks.MissingForbidden}
		}
		return all
	}
	facts := checks.Facts{Now: now, Missing: forbidden(checks.Required()...)}
	facts.Missing[checks.SourceAlerts] = checks.Missing{Reason: checks.MissingUnavailable}
	for _, informer := range checks.Informers() {
		if got := informer.Find(facts); len(got) > 0 {
			t.Errorf("%s finds %v", informer.Name, got)
		}
	}
	c := newCluster()
	c.annotate("worker-0", "state", "Degraded")
	facts = c.facts(t)
	facts.Missing = forbidden(checks.SourcePools) // the last read failed
	if got := found(t, checks.InformerNodes, facts); len(got) > 0 {
		t.Errorf("%s finds %v without the pools", checks.InformerNodes, got)
	}
}

func TestRollouts(t *testing.T) {
	t.Parallel()
	type counts struct{ Total, Updated, Updating, Pending, Unavailable, Degraded, Slots int }
	cases := map[string]struct {
		change func(*cluster)
		want   map[string]counts
	}{
		"the control plane is being updated": {func(*cluster) {}, map[string]counts{
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Pending: 3, Slots: 1},
		}},
		"half of it": {func(c *cluster) {
			c.release()
			c.update("worker", "worker-0")
			c.drain("worker", "worker-1", time.Minute)
			c.annotate("worker-2", "state", "Degraded")
		}, map[string]counts{
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Updated: 1, Updating: 1, Pending: 1, Unavailable: 1, Degraded: 1, Slots: 1},
		}},
		"all of it": {func(c *cluster) { c.complete(); updateAll(c) }, map[string]counts{
			"master": {Total: 3, Updated: 3, Slots: 1}, "worker": {Total: 3, Updated: 3, Slots: 1},
		}},
		"an installation": {func(c *cluster) {
			c.version.Status.History = c.version.Status.History[:1]
			c.release()
			updateAll(c)
		}, map[string]counts{"master": {Total: 3, Updated: 3, Slots: 1}, "worker": {Total: 3, Updated: 3, Slots: 1}}},
		"after an incomplete update, three releases": {func(c *cluster) {
			c.version.Status.History[1].State = configv1.PartialUpdate
			c.addConfig("rendered-worker-older", "4.20.4", 1000*time.Hour)
			c.annotate("worker-0", "currentConfig", "rendered-worker-older", "desiredConfig", "rendered-worker-older")
			c.release()
			c.update("worker", "worker-2")
		}, map[string]counts{"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Updated: 1, Pending: 2, Slots: 1}}},
		"the same version with another image": {func(c *cluster) {
			c.version.Status.History[1].Version = newRelease
			for _, pool := range []string{"master", "worker"} {
				c.configs[rendered(pool, oldRelease)].Annotations[mco+"release-image-version"] = newRelease
			}
			c.release()
			c.update("worker", "worker-0")
		}, map[string]counts{"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Updated: 1, Pending: 2, Slots: 1}}},
		"an update that was reverted": {func(c *cluster) {
			c.version.Status.History[0].Version, c.version.Status.History[1].Version = oldRelease, newRelease
			c.version.Status.History[1].State = configv1.PartialUpdate
		}, map[string]counts{"master": {Total: 3, Updated: 3, Slots: 1}, "worker": {Total: 3, Updated: 3, Slots: 1}}},
		"unknown configurations": {func(c *cluster) { clear(c.configs); c.complete() }, map[string]counts{
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Pending: 3, Slots: 1},
		}},
		"custom and empty pools": {func(c *cluster) {
			c.addPool("infra")
			c.addPool("empty")
			c.addNode("infra", "infra-0", "worker")
			c.addNode("infra", "infra-1", "worker")
			c.pools["infra"].Spec.MaxUnavailable = new(intstr.FromString("100%"))
		}, map[string]counts{
			"empty": {Slots: 1}, "infra": {Total: 2, Pending: 2, Slots: 2},
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Pending: 3, Slots: 1},
		}},
		"compact": {func(c *cluster) {
			clear(c.nodes)
			c.addNode("master", "a", "worker")
			c.addNode("master", "b", "worker")
		}, map[string]counts{"master": {Total: 2, Pending: 2, Slots: 1}, "worker": {Slots: 1}}},
		"a node without a configuration": {func(c *cluster) { c.nodes["worker-0"].Annotations = nil }, map[string]counts{
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 3, Pending: 3, Slots: 1},
		}},
		"a node without a configuration after the update": {func(c *cluster) { c.complete(); updateAll(c); c.nodes["worker-0"].Annotations = nil }, map[string]counts{
			"master": {Total: 3, Updated: 3, Slots: 1}, "worker": {Total: 3, Updated: 2, Pending: 1, Slots: 1},
		}},
		"a node that joins": {func(c *cluster) {
			c.nodes["worker-0"].Annotations, c.nodes["worker-0"].CreationTimestamp = nil, ago(time.Minute)
		}, map[string]counts{
			"master": {Total: 3, Pending: 3, Slots: 1}, "worker": {Total: 2, Pending: 2, Slots: 1},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			got := map[string]counts{}
			for _, p := range c.facts(t).Rollouts() {
				got[p.Pool.Name] = counts{p.Total(), p.Updated, p.Updating, p.Pending, p.Unavailable, p.Degraded, p.Slots}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdating(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*cluster)
		want   bool
	}{
		"control plane":   {func(*cluster) {}, true},
		"nodes":           {(*cluster).complete, true},
		"nothing":         {func(c *cluster) { c.complete(); updateAll(c) }, false},
		"an empty object": {func(c *cluster) { c.version.Status = configv1.ClusterVersionStatus{}; clear(c.nodes) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.change(c)
			if got := gather(t, simulation.NewFakeClient(t, c.objects()...), nil).Updating(); got != tc.want {
				t.Errorf("updating: got %t", got)
			}
		})
	}
}
