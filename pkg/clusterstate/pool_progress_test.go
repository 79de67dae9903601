// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// newPool returns a pool whose machines are all updated.
func newPool(name string, changes ...func(*mcfgv1.MachineConfigPool)) clusterstate.Pool {
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": name}}
	pool.Spec.Configuration.Name, pool.Status.Configuration.Name = "new", "new"
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 1, 1
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(pool)
	}
	return clusterstate.NewPool(pool)
}

func newNode(name, role, config, state string) clusterstate.Node {
	return clusterstate.NodeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"role": role},
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": config, "machineconfiguration.openshift.io/desiredConfig": config, "machineconfiguration.openshift.io/state": state,
		},
	}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
}

func paused(p *mcfgv1.MachineConfigPool)     { p.Spec.Paused = true }
func notUpdated(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 0 }
func empty(p *mcfgv1.MachineConfigPool) {
	p.Status.MachineCount, p.Status.UpdatedMachineCount = 0, 0
}

func required(p *mcfgv1.MachineConfigPool) {
	p.Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
}

func degradedPool(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue})
}

func TestPoolProgress(t *testing.T) {
	t.Parallel()
	done, outdated, working := newNode("a", "worker", "new", "Done"), newNode("b", "worker", "old", "Done"), newNode("c", "worker", "new", "Working")
	for name, tc := range map[string]struct {
		pool                 clusterstate.Pool
		nodes                []clusterstate.Node
		state                clusterstate.PoolState
		upToDate, rollingOut bool
		waits                bool
	}{
		"updated":                           {newPool("worker"), []clusterstate.Node{done}, clusterstate.PoolDone, true, false, false},
		"outdated node":                     {newPool("worker"), []clusterstate.Node{done, outdated}, clusterstate.PoolUpdating, false, true, true},
		"node that is not finished":         {newPool("worker"), []clusterstate.Node{outdated, working}, clusterstate.PoolUpdating, false, true, false},
		"not updated":                       {newPool("worker", notUpdated), []clusterstate.Node{done}, clusterstate.PoolUpdating, false, true, false},
		"paused":                            {newPool("worker", paused), []clusterstate.Node{done}, clusterstate.PoolPaused, true, false, false},
		"paused with an outdated node":      {newPool("worker", paused), []clusterstate.Node{outdated}, clusterstate.PoolPaused, false, false, true},
		"paused, not updated":               {newPool("worker", paused, notUpdated), []clusterstate.Node{done}, clusterstate.PoolPaused, false, false, false},
		"paused and empty":                  {newPool("worker", paused, empty), nil, clusterstate.PoolDone, true, false, false},
		"paused, with a node not counted":   {newPool("worker", paused, empty), []clusterstate.Node{done}, clusterstate.PoolPaused, true, false, false},
		"degraded":                          {newPool("worker", degradedPool), []clusterstate.Node{done}, clusterstate.PoolDegraded, false, false, false},
		"degraded, paused, and not updated": {newPool("worker", degradedPool, paused, notUpdated), []clusterstate.Node{done}, clusterstate.PoolDegraded, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, others := clusterstate.ProgressOf([]clusterstate.Pool{tc.pool}, append(tc.nodes, newNode("z", "none", "old", "Done")), clusterstate.ConfigProgress)
			p := &all[0]
			if p.State() != tc.state || p.UpToDate() != tc.upToDate || p.RollingOut() != tc.rollingOut || p.Waits() != tc.waits {
				t.Errorf("state %q, up to date %t, rolling out %t, waits %t", p.State(), p.UpToDate(), p.RollingOut(), p.Waits())
			}
			if p.Total() != len(tc.nodes) || p.Updated+p.Updating+p.Pending != p.Total() || len(others) != 1 || p.Slots != 1 {
				t.Errorf("got %+v and %d others", p, len(others))
			}
		})
	}
}

func TestHoldsBackWorkers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pool clusterstate.Pool
		want bool
	}{
		"paused, not updated": {newPool("worker", paused, notUpdated), true},
		"updated":             {newPool("worker", paused), false},
		"not paused":          {newPool("worker", notUpdated), false},
		"empty":               {newPool("worker", paused, empty, func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions = nil }), false},
		"required":            {newPool("arbiter", paused, notUpdated, required), false},
	} {
		if got := clusterstate.HoldsBackWorkers([]clusterstate.Pool{newPool("infra"), tc.pool}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// An unavailable or degraded node is also included in the other counts.
func TestNodeCounts(t *testing.T) {
	t.Parallel()
	node := func(change func(*clusterstate.NodeProgress)) clusterstate.NodeProgress {
		n := clusterstate.NodeProgress{Node: &clusterstate.Node{Ready: true, State: "Done"}}
		change(&n)
		return n
	}
	for name, tc := range map[string]struct {
		node clusterstate.NodeProgress
		want clusterstate.NodeCounts
	}{
		"updated":           {node(func(*clusterstate.NodeProgress) {}), clusterstate.NodeCounts{Updated: 1}},
		"pending":           {node(func(n *clusterstate.NodeProgress) { n.Outdated = true }), clusterstate.NodeCounts{Pending: 1}},
		"updating":          {node(func(n *clusterstate.NodeProgress) { n.Outdated, n.Step = true, clusterstate.StepDraining }), clusterstate.NodeCounts{Updating: 1}},
		"finishing":         {node(func(n *clusterstate.NodeProgress) { n.Step = clusterstate.StepUpdating }), clusterstate.NodeCounts{Updating: 1}},
		"not ready":         {node(func(n *clusterstate.NodeProgress) { n.Node.Ready = false }), clusterstate.NodeCounts{Updated: 1, Unavailable: 1}},
		"cordoned":          {node(func(n *clusterstate.NodeProgress) { n.Node.Cordoned = true }), clusterstate.NodeCounts{Updated: 1, Unavailable: 1}},
		"pending, degraded": {node(func(n *clusterstate.NodeProgress) { n.Outdated, n.Node.State = true, "Degraded" }), clusterstate.NodeCounts{Pending: 1, Degraded: 1}},
		"not reconcilable":  {node(func(n *clusterstate.NodeProgress) { n.Node.State = "Unreconcilable" }), clusterstate.NodeCounts{Updated: 1, Degraded: 1}},
	} {
		var got clusterstate.NodeCounts
		if got.Add(&tc.node); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestPool_Slots(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		setting *intstr.IntOrString
		want    int
	}{
		"not set": {nil, 1}, "a number": {new(intstr.FromInt32(3)), 3}, "part of the machines": {new(intstr.FromString("50%")), 2},
		"less than one machine": {new(intstr.FromString("10%")), 1}, "malformed": {new(intstr.FromString("some")), 1},
	} {
		pool := newPool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = tc.setting })
		if got := pool.Slots(5); got != tc.want {
			t.Errorf("%s: %d machines at a time, want %d", name, got, tc.want)
		}
	}
}

func TestNodeProgress_Updated(t *testing.T) {
	t.Parallel()
	for progress, want := range map[clusterstate.NodeProgress]bool{
		{}:                                 true,
		{Outdated: true}:                   false,
		{Step: clusterstate.StepRebooting}: false,
		{Step: clusterstate.StepRebooting, Outdated: true}: false,
	} {
		if got := progress.Updated(); got != want {
			t.Errorf("%+v: got %t", progress, got)
		}
	}
}
