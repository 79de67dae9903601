// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// annotated returns a cordoned node with the given annotations of the machine config operator.
func annotated(current, desired, state, desiredDrain, appliedDrain string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig":    current,
			"machineconfiguration.openshift.io/desiredConfig":    desired,
			"machineconfiguration.openshift.io/state":            state,
			"machineconfiguration.openshift.io/desiredDrain":     desiredDrain,
			"machineconfiguration.openshift.io/lastAppliedDrain": appliedDrain,
		}},
		Spec: corev1.NodeSpec{Unschedulable: true},
	}
}

func TestNode_cordon_and_drain(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		node   corev1.Node
		byHand bool
	}{
		"not cordoned": {corev1.Node{}, false},
		"cordoned without a machine config operator": {corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}, true},
		"cordoned long after an update":              {annotated("r-1", "r-1", "Done", "uncordon-r-1", "uncordon-r-1"), true},
		"the cluster autoscaler, about to delete it": {corev1.Node{Spec: corev1.NodeSpec{
			Unschedulable: true, Taints: []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}},
		}}, false},
		"a person, while the autoscaler considers it": {corev1.Node{Spec: corev1.NodeSpec{
			Unschedulable: true, Taints: []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler", Effect: corev1.TaintEffectPreferNoSchedule}},
		}}, true},
		"the operator, about to drain":            {annotated("r-1", "r-2", "Done", "uncordon-r-1", "uncordon-r-1"), false},
		"the operator, drain requested":           {annotated("r-1", "r-2", "Working", "drain-r-2", "uncordon-r-1"), false},
		"the operator, having drained":            {annotated("r-1", "r-2", "Working", "drain-r-2", "drain-r-2"), false},
		"the operator, degraded during an update": {annotated("r-1", "r-2", "Degraded", "drain-r-2", "drain-r-2"), false},
		"the operator, rebooted and not back yet": {annotated("r-2", "r-2", "Done", "drain-r-2", "drain-r-2"), false},
		"the operator, about to uncordon":         {annotated("r-2", "r-2", "Done", "uncordon-r-2", "drain-r-2"), false},
		"the operator, working on the same again": {annotated("r-2", "r-2", "Working", "uncordon-r-2", "uncordon-r-2"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.node.Name = "a"
			nodes, err := clusterstate.ListNodes(t.Context(), simulation.NewFakeClient(t, &tc.node))
			if err != nil || len(nodes) != 1 {
				t.Fatalf("got %v, %v", nodes, err)
			}
			if got := nodes[0].CordonedByHand(); got != tc.byHand {
				t.Errorf("cordoned by hand: got %t", got)
			}
		})
	}
}

func TestListNodes(t *testing.T) {
	t.Parallel()
	noon := metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	condition := func(name corev1.NodeConditionType, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: name, Status: status}
	}
	sick := annotated("r-1", "r-2", "Degraded", "", "")
	sick.Name = "b-sick"
	sick.Annotations["machineconfiguration.openshift.io/reason"] = "cannot drain:\n pod x"
	sick.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: noon},
		condition(corev1.NodeMemoryPressure, corev1.ConditionTrue),
		condition(corev1.NodeDiskPressure, corev1.ConditionUnknown),
	}
	sick.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &noon}, {Key: corev1.TaintNodePIDPressure}, {Key: corev1.TaintNodePIDPressure, Effect: corev1.TaintEffectNoExecute}, {Key: "other"}}
	sound := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a-sound"}}
	sound.Status.Conditions = []corev1.NodeCondition{
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse), condition(corev1.NodeReady, corev1.ConditionTrue),
	}
	bare := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c-bare"}}

	got, err := clusterstate.ListNodes(t.Context(), backwards(t, &sick, &bare, &sound))
	if err != nil {
		t.Fatal(err)
	}
	want := []clusterstate.Node{
		{Name: "a-sound", Ready: true},
		{
			Name: "b-sick", Cordoned: true, CordonedSince: noon.Time, ReadySince: noon.Time, Pressure: []string{"PIDs", "memory"}, Updating: true,
			CurrentConfig: "r-1", DesiredConfig: "r-2", State: "Degraded", Reason: "cannot drain: pod x",
		},
		{Name: "c-bare"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(clusterstate.Node{}), cmpopts.IgnoreFields(clusterstate.Node{}, "Created", "DesiredDrain", "AppliedDrain")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListPools_sorts_by_name(t *testing.T) {
	t.Parallel()
	var want, got []string
	var objects []client.Object
	for _, name := range []string{"infra", "master", "worker"} {
		want = append(want, name)
		objects = append(objects, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	pools, err := clusterstate.ListPools(t.Context(), backwards(t, objects...))
	for _, pool := range pools {
		got = append(got, pool.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestListPools(t *testing.T) {
	t.Parallel()
	updated := mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 7}}
	updated.Spec.Configuration.Name = "r-2"
	updated.Status = mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: 7, MachineCount: 3, UpdatedMachineCount: 3,
		Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}},
	}
	updated.Status.Configuration.Name = "r-2"
	cases := map[string]struct {
		change func(*mcfgv1.MachineConfigPool)
		want   clusterstate.Pool
		empty  bool
	}{
		"an updated pool": {
			func(*mcfgv1.MachineConfigPool) {},
			clusterstate.Pool{Name: "worker", Observed: true, Config: "r-2", Updated: true, Machines: 3, UpdatedMachines: 3},
			false,
		},
		"an updated pool without machines": {
			func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount, p.Status.UpdatedMachineCount = 0, 0 },
			clusterstate.Pool{Name: "worker", Observed: true, Config: "r-2", Updated: true},
			true,
		},
		"a pool whose spec was not observed yet": {
			func(p *mcfgv1.MachineConfigPool) { p.Status.ObservedGeneration = 6 },
			clusterstate.Pool{Name: "worker", Config: "r-2", Machines: 3, UpdatedMachines: 3},
			false,
		},
		"pool with another desired configuration": {
			func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "r-3" },
			clusterstate.Pool{Name: "worker", Observed: true, Config: "r-3", Machines: 3, UpdatedMachines: 3},
			false,
		},
		"pool with an outdated machine": {
			func(p *mcfgv1.MachineConfigPool) { p.Status.UpdatedMachineCount = 2 },
			clusterstate.Pool{Name: "worker", Observed: true, Config: "r-2", Machines: 3, UpdatedMachines: 2},
			false,
		},
		"pool without condition Updated": {
			func(p *mcfgv1.MachineConfigPool) { p.Status.Conditions = nil },
			clusterstate.Pool{Name: "worker", Observed: true, Config: "r-2", Machines: 3, UpdatedMachines: 3},
			false,
		},
		"a pool without a status": {
			func(p *mcfgv1.MachineConfigPool) { p.Status = mcfgv1.MachineConfigPoolStatus{} },
			clusterstate.Pool{Name: "worker", Config: "r-2"},
			false,
		},
		"a pool with nothing rendered": {
			func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name, p.Status.Configuration.Name = "", "" },
			clusterstate.Pool{Name: "worker", Observed: true, Machines: 3, UpdatedMachines: 3},
			false,
		},
		"a paused, degraded pool, with the message of what is degraded": {
			func(p *mcfgv1.MachineConfigPool) {
				p.Spec.Paused = true
				p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
					{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue},
					{Type: mcfgv1.MachineConfigPoolNodeDegraded, Status: corev1.ConditionTrue, Reason: "1 nodes", Message: "node x"},
				}
			},
			clusterstate.Pool{
				Name: "worker", Observed: true, Config: "r-2", Paused: true, Machines: 3, UpdatedMachines: 3,
				Degraded:     clusterstate.Condition{Status: "True", Reason: "1 nodes", Message: "node x"},
				NodeDegraded: clusterstate.Condition{Status: "True", Reason: "1 nodes", Message: "node x"},
			},
			false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := updated.DeepCopy()
			tc.change(pool)
			got, err := clusterstate.ListPools(t.Context(), simulation.NewFakeClient(t, pool))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]clusterstate.Pool{tc.want}, got, cmpopts.IgnoreUnexported(clusterstate.Pool{}), cmpopts.IgnoreFields(clusterstate.Pool{}, "ResourceVersion", "UID", "StatusConfig")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got[0].Empty() != tc.empty {
				t.Errorf("empty: got %t", got[0].Empty())
			}
		})
	}
}

func TestNodesByPool(t *testing.T) {
	t.Parallel()
	pool := func(name string, selector *metav1.LabelSelector) client.Object {
		p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.NodeSelector = selector
		return p
	}
	role := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"role/" + name: ""}}
	}
	node := func(name string, roles ...string) client.Object {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
		for _, role := range roles {
			n.Labels["role/"+role] = ""
		}
		return n
	}
	windows := func(o client.Object) client.Object {
		o.GetLabels()["kubernetes.io/os"] = "windows"
		return o
	}
	r := simulation.NewFakeClient(t,
		pool("infra", role("infra")), pool("master", role("master")), pool("worker", role("worker")), pool("zone", role("zone")),
		pool("arbiter", role("arbiter")), pool("empty", &metav1.LabelSelector{}), pool("without", nil), pool("wrong", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}),
		node("m", "master"), node("m-infra", "infra", "master", "worker"), node("w-1", "worker"), node("w-2", "worker"),
		node("a", "arbiter", "worker"), node("m-both", "master", "infra", "zone"), node("i", "infra", "worker"), node("z", "worker", "zone"), node("both", "infra", "zone"), node("none", "other"), windows(node("win", "worker")))
	pools, err := clusterstate.ListPools(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := clusterstate.ListNodes(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for i := range nodes {
		node := &nodes[i]
		if conflicting := clusterstate.ConflictingPools(pools, node); conflicting != nil {
			got[strings.Join(conflicting, "+")] = append(got[strings.Join(conflicting, "+")], node.Name)
		}
		if pool := clusterstate.PoolOf(pools, node); pool != "" {
			got[pool] = append(got[pool], node.Name)
		}
	}
	want := map[string][]string{"master": {"m", "m-infra"}, "worker": {"w-1", "w-2"}, "infra": {"i"}, "zone": {"z"}, "arbiter": {"a"}, "infra+zone": {"both", "m-both"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListClusterOperators(t *testing.T) {
	t.Parallel()
	operator := configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operand", Version: "1"}, {Name: "operator", Version: "4.4.6"}}
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		{Type: "Degraded", Status: "True", Reason: "R", Message: "m"}, {Type: "Available", Status: "True"}, {Type: "Progressing", Status: "False"},
	}
	bare := configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	r := simulation.NewFakeClient(t, &operator, &bare)
	want := clusterstate.ClusterOperator{
		Name: "machine-config", Version: "4.4.6", Available: clusterstate.Condition{Status: "True"},
		Degraded:    clusterstate.Condition{Status: "True", Reason: "R", Message: "m"},
		Progressing: clusterstate.Condition{Status: "False"},
	}

	all, err := clusterstate.ListClusterOperators(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]clusterstate.ClusterOperator{{Name: "bare"}, want}, all, cmpopts.IgnoreFields(clusterstate.ClusterOperator{}, "Created")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
}
