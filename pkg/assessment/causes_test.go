// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// chains returns the messages of the causes.
func chains(a updatev1beta1.Assessment) [][]string {
	var all [][]string
	for _, c := range a.Causes {
		var chain []string
		for _, l := range c.Chain {
			chain = append(chain, l.Message)
		}
		all = append(all, chain)
	}
	return all
}

// stuckPool returns a cluster with a pool that is stuck without any insight that explains it.
func stuckPool() *fixture { return poolUnchanged(time.Hour) }

func TestCauses(t *testing.T) {
	t.Parallel()
	nodes := func(f *fixture, reason string, names ...string) {
		for _, name := range names {
			f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelWarning, reason, "nodes", before(time.Hour), ref("Node", "", name)))
		}
	}
	for name, tc := range map[string]struct {
		cluster func() *fixture
		want    [][]string
	}{
		"five nodes with one reason": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeNotReady", "worker-5", "worker-1", "worker-4", "worker-2", "worker-3")
			return f
		}, [][]string{{"nodes worker-1, worker-2, worker-3 and 2 more are not ready", "no node of pool worker is being updated"}}},
		"two reasons": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeNotReady", "worker-5")
			nodes(f, "NodeDiskPressure", "worker-5", "worker-4")
			return f
		}, [][]string{
			{"nodes worker-4, worker-5 have too little disk space", "node worker-5 is not ready", "no node of pool worker is being updated"},
		}},
		"two budgets hold pods on two nodes": {func() *fixture {
			f := nodeUnchanged("NodeDraining", 70*time.Minute)
			for _, of := range []string{"api", "db"} {
				f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelWarning, "PodHeldByBudget", "pods", before(time.Hour),
					ref("PodDisruptionBudget", "shop", of), ref("Pod", "shop", of+"-1"), ref("Node", "", "worker-2")))
			}
			return f
		}, [][]string{{
			"PodDisruptionBudgets shop/api, shop/db allow 0 disruptions", "pods shop/api-1, shop/db-1 cannot be evicted",
			"drain of node worker-2 cannot finish, and nothing forces it", "pool worker waits: 1 node at a time",
		}}},
		"node of the control plane": {func() *fixture {
			f := operatorUnchanged("machine-config", 31*time.Minute).masterChanged(31 * time.Minute)
			f.insight(f.plane(), checks.InformerNodes, newInsight(updatev1beta1.LevelError, "NodeDegraded", "nodes", before(time.Hour), ref("Node", "", "master-2")))
			return f
		}, [][]string{
			{"node master-2 cannot be updated", "pool master waits: 1 node at a time", "ClusterOperator machine-config waits for its nodes"},
			{"node master-1 has not changed for too long", "pool master waits: 1 node at a time", "ClusterOperator machine-config waits for its nodes"},
		}},
		"third party about the same node": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeNotReady", "worker-5")
			f.insight(f.pool(), "stranger", newInsight(updatev1beta1.LevelCritical, "Odd", "a cable is loose", before(time.Hour), ref("Node", "", "worker-5")))
			return f
		}, [][]string{
			{"node worker-5 is not ready", "no node of pool worker is being updated"},
			{"Node worker-5: a cable is loose"},
		}},
		"third party that explains an insight of ours": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeNotReady", "worker-5")
			odd := newInsight(updatev1beta1.LevelError, "Odd", "all is well", before(time.Hour), ref("PodDisruptionBudget", "shop", "api"), ref("Node", "", "worker-5"))
			f.insight(f.pool(), "stranger", odd)
			f.pool().UpdateInformers[0].Insights[0].CausedBy = []string{odd.UUID}
			return f
		}, [][]string{
			{"node worker-5 is not ready", "no node of pool worker is being updated"},
			{"PodDisruptionBudget shop/api: all is well", "Node worker-5: all is well"},
		}},
		"circle of causes": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeNotReady", "worker-4")
			nodes(f, "NodeDiskPressure", "worker-5")
			both := f.pool().UpdateInformers[0].Insights
			both[0].CausedBy, both[1].CausedBy = []string{both[1].UUID}, []string{both[0].UUID}
			return f
		}, [][]string{{"node worker-4 is not ready", "node worker-5 has too little disk space", "no node of pool worker is being updated"}}},
		"pool that is degraded by a node": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeDegraded", "worker-5")
			degraded := newInsight(updatev1beta1.LevelError, "PoolDegraded", "pools", before(time.Hour))
			degraded.Scope.WorkerPool = []updatev1beta1.ResourceReference{ref("MachineConfigPool", "", worker)}
			f.insight(f.pool(), checks.InformerNodes, degraded)
			return f
		}, [][]string{{"node worker-5 cannot be updated", "pool worker is degraded"}}},
		"node that is degraded in a pool that a person has paused": {func() *fixture {
			f := stuckPool()
			nodes(f, "NodeDegraded", "worker-5")
			paused := newInsight(updatev1beta1.LevelWarning, "PoolPaused", "pools", before(time.Hour))
			paused.Scope.WorkerPool = []updatev1beta1.ResourceReference{ref("MachineConfigPool", "", worker)}
			f.insight(f.pool(), checks.InformerNodes, paused)
			return f
		}, [][]string{{"node worker-5 cannot be updated", "no node of pool worker is being updated"}, {"pool worker is paused and has outdated nodes", "no node of pool worker is being updated"}}},
		"node that was uncordoned in its drain, with a pod": {func() *fixture {
			f := nodeUnchanged("NodeDraining", 2*time.Hour)
			nodes(f, "DrainNotCordoned", "worker-2")
			f.insight(f.pool(), checks.InformerNodes, newInsight(updatev1beta1.LevelWarning, "PodNotEvicted", "pods", before(time.Hour), ref("Pod", "shop", "api-1"), ref("Node", "", "worker-2")))
			return f
		}, [][]string{
			{"node worker-2 can be scheduled although its drain is requested", "drain of node worker-2 cannot finish, and nothing forces it", "pool worker waits: 1 node at a time"},
			{"pod shop/api-1 is not evicted yet", "drain of node worker-2 cannot finish, and nothing forces it", "pool worker waits: 1 node at a time"},
		}},
		"insight about no object": {func() *fixture {
			f := stuckPool()
			f.insight(f.pool(), "stranger", newInsight(updatev1beta1.LevelError, "Odd", "a cable is loose", before(time.Hour)))
			return f
		}, [][]string{{"no node of pool worker is being updated"}, {"a cable is loose"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, chains(tc.cluster().assess())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestBudget_remedies checks that a remedy has a command only if the command is known to help.
func TestBudget_remedies(t *testing.T) {
	t.Parallel()
	scale := []string{"oc -n shop scale deployment/api --replicas=3"}
	show := []string{"oc -n shop get poddisruptionbudget api -o yaml"}
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   []string
	}{
		"number of pods, all healthy":   {func(*fixture) {}, scale},
		"percentage or maxUnavailable":  {func(f *fixture) { f.facts.PDBs[0].MinAvailable = 0 }, show},
		"a pod that is not healthy":     {func(f *fixture) { f.facts.PDBs[0].Healthy = 1 }, show},
		"more pods required than exist": {func(f *fixture) { f.facts.PDBs[0].Desired = 3 }, show},
		"pod of a StatefulSet":          {func(f *fixture) { f.facts.BudgetPods["shop"][0].Labels = map[string]string{"app": "api"} }, show},
		"pods of two Deployments": {func(f *fixture) {
			other := &f.facts.BudgetPods["shop"][1]
			other.Name, other.Labels = "web-5d8f7-abcde", map[string]string{"app": "api", "pod-template-hash": "5d8f7"}
		}, show},
		"pods that were not read": {func(f *fixture) { f.facts.BudgetPods = nil }, show},
		"a pod that is not known": {func(f *fixture) { f.facts.BudgetPods["shop"] = f.facts.BudgetPods["shop"][:1] }, show},
		"a pod that another budget guards": {func(f *fixture) {
			f.facts.BudgetPods["shop"][1].Labels = map[string]string{"app": "web", "pod-template-hash": "7c9f4"}
		}, show},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := stuckDrainCluster()
			f.pool().UpdateInformers[0].Insights[1].Impact.Reason = "PodHeldByBudget"
			tc.change(f)
			got := f.assess().Remedy
			if diff := cmp.Diff(tc.want, got.Commands); diff != "" || (got.Type == updatev1beta1.RemedyFixes) != (name == "number of pods, all healthy") {
				t.Errorf("%s %s (-want +got):\n%s", got.Type, got.Text, diff)
			}
		})
	}
}

// TestPod_with_two_budgets checks that the remedy does not add replicas, because the Eviction API refuses the
// pod regardless of their number.
func TestPod_with_two_budgets(t *testing.T) {
	t.Parallel()
	f := stuckDrainCluster()
	f.pool().UpdateInformers[0].Insights = append(f.pool().UpdateInformers[0].Insights[:1:1], newInsight(updatev1beta1.LevelWarning, "PodSelectedByBudgets", "pods", before(time.Hour),
		ref("PodDisruptionBudget", "shop", "api"), ref("PodDisruptionBudget", "shop", "all"), ref("Pod", "shop", "api-7c9f4-x2k1p"), ref("Node", "", "worker-4")))
	other := f.facts.PDBs[0]
	other.Name = "all"
	f.facts.PDBs = append(f.facts.PDBs, other)
	got := f.assess()
	want := &updatev1beta1.Remedy{
		Type: updatev1beta1.RemedyDiagnoses, Text: "Delete one of the budgets, or change its selector:",
		Commands: []string{"oc -n shop get poddisruptionbudget all -o yaml", "oc -n shop get poddisruptionbudget api -o yaml"},
	}
	if diff := cmp.Diff(want, got.Remedy); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if first := got.Causes[0].Chain[0].Message; first != "PodDisruptionBudgets shop/all, shop/api select the same pods, so the pods can never be evicted" {
		t.Error(first)
	}
}

// TestPool_remedies checks that the commands name the pool, whatever its kind, and end only the pause that is
// in effect.
func TestPool_remedies(t *testing.T) {
	t.Parallel()
	paused := func(managed map[string]any) *fixture {
		f := pausedCluster(updatev1beta1.ReasonPaused)
		pool := &f.status.WorkerPools[0]
		pool.APIVersion, pool.Kind, pool.Namespace, pool.Name = "machine.openshift.io/v1beta1", "MachineSet", "openshift-machine-api", "blue"
		f.facts.VersionManagement = managed
		return f
	}
	get := []string{"oc -n openshift-machine-api get machineset.machine.openshift.io blue -o yaml"}
	resume := []string{`oc patch clusterversion version --type=merge -p '{"spec":{"versionManagement":{"pausedUntil":null}}}'`}
	for name, tc := range map[string]struct {
		cluster *fixture
		want    []string
	}{
		"MachineConfigPool that is stalled":    {stuckPool(), []string{"oc describe machineconfigpool worker"}},
		"paused by the pool itself":            {paused(nil), get},
		"cluster that is paused":               {paused(map[string]any{"pausedUntil": "true"}), resume},
		"cluster that is not paused":           {paused(map[string]any{"pausedUntil": "false"}), get},
		"cluster whose pause has ended":        {paused(map[string]any{"pausedUntil": "2020-01-01T00:00:00Z"}), get},
		"cluster whose pause cannot be parsed": {paused(map[string]any{"pausedUntil": "soon"}), get},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tc.cluster.assess()
			if diff := cmp.Diff(tc.want, a.Remedy.Commands); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", a.State, a.Remedy.Text, diff)
			}
		})
	}
}

// TestCommands_have_valid_names checks that arbitrary text from third-party informers does not end up in a
// command line.
func TestCommands_have_valid_names(t *testing.T) {
	t.Parallel()
	f := stuckPool()
	f.insight(f.pool(), "stranger", newInsight(updatev1beta1.LevelCritical, "Odd", "odd", before(2*time.Hour), ref("Node", "", "x; rm -rf /"), ref("$(reboot)", "", "node")))
	for _, c := range f.assess().Causes {
		if c.UpdateInformer == "stranger" && cmp.Diff([]string{"oc update status --details"}, c.Remedy.Commands) != "" {
			t.Errorf("%q", c.Remedy.Commands)
		}
	}
}

// TestDiagnostics_of_strangers checks that a diagnostic shows the objects that an informer names, unless a
// name is invalid, because names become part of the command.
func TestDiagnostics_of_strangers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		object updatev1beta1.ResourceReference
		want   []string
	}{
		"namespaced":          {ref("Pod", "shop", "api-0"), []string{"oc -n shop describe pod api-0"}},
		"cluster-scoped":      {ref("Node", "", "worker-2"), []string{"oc describe node worker-2"}},
		"a hostile namespace": {ref("Pod", "shop; reboot #", "api-0"), []string{"oc update status --details"}},
		"a hostile name":      {ref("Pod", "shop", "$(reboot)"), []string{"oc update status --details"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := poolUnchanged(time.Hour)
			f.insight(f.pool(), "stranger", newInsight(updatev1beta1.LevelError, "Odd", "odd", before(time.Minute), tc.object))
			causes := f.assess().Causes
			at := slices.IndexFunc(causes, func(c updatev1beta1.Cause) bool { return c.UpdateInformer == "stranger" })
			if at < 0 || !slices.Equal(causes[at].Remedy.Commands, tc.want) {
				t.Errorf("got %+v, want %q", causes, tc.want)
			}
		})
	}
}

// TestPaused_pool_with_an_error checks that an error is shown although the pool is paused.
func TestPaused_pool_with_an_error(t *testing.T) {
	t.Parallel()
	got := pausedCluster(updatev1beta1.ReasonPaused).reporting(checks.InformerNodes, updatev1beta1.LevelError, "NodeDegraded").assess()
	if !got.ActionRequired || len(got.Watch) != 1 || got.Watch[0].Message != "node worker-5 cannot be updated" {
		t.Errorf("got %+v", got.Watch)
	}
}
