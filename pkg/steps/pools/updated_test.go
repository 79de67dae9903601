// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// version returns the ClusterVersion of a cluster at 4.4.6.
func version() client.Object {
	v := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	v.Status.History = []configv1.UpdateHistory{{Version: "4.4.6", State: configv1.CompletedUpdate}}
	return v
}

// operator returns the ClusterOperator of the machine config operator at a version.
func operator(version string, progressing configv1.ConditionStatus) client.Object {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	if version != "" {
		o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
	}
	o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: "Progressing", Status: progressing, Message: "Working towards 4.4.6"}}
	return o
}

// pool returns a pool of six updated machines with these changes.
func pool(name string, changes ...func(*mcfgv1.MachineConfigPool)) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 4}}
	p.Spec.Configuration.Name = "rendered-" + name + "-2"
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{role + name: ""}}
	p.Status = mcfgv1.MachineConfigPoolStatus{
		ObservedGeneration: 4, MachineCount: 6, UpdatedMachineCount: 6,
		Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}},
	}
	p.Status.Configuration.Name = p.Spec.Configuration.Name
	for _, change := range changes {
		change(p)
	}
	return p
}

func updating(p *mcfgv1.MachineConfigPool) {
	p.Status.Configuration.Name = "rendered-" + p.Name + "-1"
	p.Status.UpdatedMachineCount = 3
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}

func unobserved(p *mcfgv1.MachineConfigPool) { p.Generation = 5 }

func empty(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount, p.Status.UpdatedMachineCount = 0, 0 }

func paused(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true }

func degraded(p *mcfgv1.MachineConfigPool) {
	p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{
		Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, Message: "node x is stuck",
	})
}

const (
	role             = "node-role.kubernetes.io/"
	annotationPrefix = "machineconfiguration.openshift.io/"
)

// node returns a node of a pool that has the configuration of the pool, with these changes.
func node(pool, name string, changes ...func(*corev1.Node)) client.Object {
	config := "rendered-" + pool + "-2"
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{role + pool: ""},
		Annotations: map[string]string{annotationPrefix + "currentConfig": config, annotationPrefix + "desiredConfig": config, annotationPrefix + "state": "Done"},
	}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return n
}

// machineConfigState sets the state that the machine config daemon reports for a node whose update
// has started.
func machineConfigState(state, reason string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Annotations[annotationPrefix+"currentConfig"] = strings.TrimSuffix(n.Annotations[annotationPrefix+"desiredConfig"], "2") + "1"
		n.Annotations[annotationPrefix+"state"], n.Annotations[annotationPrefix+"reason"] = state, reason
	}
}

// notStarted sets the state of a node whose update has not started.
func notStarted(n *corev1.Node) {
	machineConfigState("Done", "")(n)
	n.Annotations[annotationPrefix+"desiredConfig"] = n.Annotations[annotationPrefix+"currentConfig"]
}

var noon = metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &noon})
}

func draining(n *corev1.Node) {
	cordoned(n)
	n.Annotations[annotationPrefix+"desiredDrain"] = "drain-" + n.Annotations[annotationPrefix+"desiredConfig"]
}

func notReady(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: noon}}
}

func TestWaitUntilUpdated(t *testing.T) {
	t.Parallel()
	here := func(objects ...client.Object) []client.Object {
		return append(objects, version(), operator("4.4.6", "False"))
	}
	cases := map[string]struct {
		objects []client.Object
		want    string // the reason
	}{
		"all are updated": {
			here(pool("master"), pool("worker")),
			engine.ReasonDone,
		},
		"updating pool with the states of its nodes": {
			here(pool("master"), pool("worker", updating),
				node("worker", "w-1"),
				node("worker", "w-2", machineConfigState("Working", "")),
				node("worker", "w-3", machineConfigState("Working", "writing\n files")),
				node("worker", "w-4", notStarted),
				node("master", "m-1", notReady)),
			"PoolsUpdating",
		},
		"the nodes that hold one up are named, the worst first, and since when": {
			here(pool("worker", updating),
				node("worker", "a", machineConfigState("Working", "")),
				node("worker", "b", machineConfigState("Working", ""), draining),
				node("worker", "c", notStarted, cordoned),
				node("worker", "d", machineConfigState("Working", ""), notReady),
				node("worker", "e", machineConfigState("Degraded", "cannot evict pod web-0"), draining),
				node("worker", "f", machineConfigState("Unreconcilable", "")),
				node("worker", "g", notStarted, notReady)),
			"PoolsUpdating",
		},
		"node of a custom pool is named once": {
			here(pool("infra", updating), pool("worker"),
				node("infra", "i", machineConfigState("Working", ""), func(n *corev1.Node) { n.Labels[role+"worker"] = "" })),
			"PoolsUpdating",
		},
		"one has grown, and has not counted the newcomer yet": {
			here(pool("worker"), node("worker", "w-7", notStarted)),
			"PoolsUpdating",
		},
		"one has grown, and has not updated the newcomer yet": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Status.MachineCount = 7 })),
			"PoolsUpdating",
		},
		"nodes without a configuration and without a pool": {
			here(pool("worker"),
				node("worker", "windows", func(n *corev1.Node) { n.Annotations = nil }),
				node("edge", "e", machineConfigState("Working", ""))),
			engine.ReasonDone,
		},
		"one has no machines": {
			here(pool("worker", empty)),
			engine.ReasonDone,
		},
		"pool without machines not observed": {
			here(pool("worker", empty, unobserved)),
			"PoolsUpdating",
		},
		"paused pool without machines": {
			here(pool("worker"), pool("zone", paused, empty, func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "rendered-zone-3" })),
			engine.ReasonDone,
		},
		"a paused one without machines has just got one": {
			here(pool("worker", paused, empty), node("worker", "w-1", notStarted)),
			"PoolPaused",
		},
		"paused pool without machines not observed": {
			here(pool("worker", paused, empty, unobserved)),
			"PoolPaused",
		},
		"one was paused while a node was being updated": {
			here(pool("worker", paused, updating), node("worker", "w-1", machineConfigState("Working", ""), draining)),
			"PoolPaused",
		},
		"a degraded one is named first": {
			here(pool("infra", updating), pool("worker", updating, degraded), pool("zone", paused)),
			"PoolDegraded",
		},
		"one that is degraded although its machines are updated is not done": {
			here(pool("worker", degraded)),
			"PoolDegraded",
		},
		"a paused one may have been passed over": {
			here(pool("worker", paused)),
			"PoolPaused",
		},
		"pool has not observed the new configuration": {
			here(pool("worker", unobserved)),
			"PoolsUpdating",
		},
		"pool updated with the previous configuration": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "rendered-worker-3" })),
			"PoolsUpdating",
		},
		"pool without conditions": {
			here(pool("worker", func(p *mcfgv1.MachineConfigPool) { p.Status = mcfgv1.MachineConfigPoolStatus{} })),
			"PoolsUpdating",
		},
		"the machine config operator is at the release before": {
			[]client.Object{pool("worker"), version(), operator("4.4.5", "False")},
			"PoolsUpdating",
		},
		"machine config operator without a version": {
			[]client.Object{pool("worker"), version(), operator("", "False")},
			"PoolsUpdating",
		},
		"objects without a status": {
			[]client.Object{pool("worker"), &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}, operator("", "False")},
			"PoolsUpdating",
		},
		"the machine config operator is at work": {
			[]client.Object{pool("worker"), version(), operator("4.4.6", "True")},
			"PoolsUpdating",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.NewFakeClient(t, tc.objects...)
			got, err := pools.WaitUntilUpdated(r, checks.Drains{})(t.Context(), engine.Run{})
			golden.Texts(t, "", got.Message())
			isDone := tc.want == engine.ReasonDone
			if err != nil || got.Reason() != tc.want || got.Passed() != isDone {
				t.Errorf("got %+v, %v, want %s", got, err, tc.want)
			}
			all, err := pools.AllUpdated(r, r)(t.Context())
			if err != nil || all != isDone {
				t.Errorf("all updated: got %t, %v", all, err)
			}
		})
	}
}

func TestMessages_are_bounded(t *testing.T) {
	t.Parallel()
	nonsense := strings.Repeat("b\x1b[31m\xff\u202eusy\n", 10_000)
	all := []client.Object{version(), operator("4.4.6", "False")}
	for _, name := range []string{"worker", "infra", "zone-a", "zone-b"} {
		all = append(all, pool(name, updating, func(p *mcfgv1.MachineConfigPool) {
			p.Status.Conditions = append(p.Status.Conditions, mcfgv1.MachineConfigPoolCondition{
				Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, Message: nonsense,
			})
		}))
		for i := range 5 {
			all = append(all,
				node(name, fmt.Sprintf("%s-broken-%d", name, i), machineConfigState("Degraded", nonsense)),
				node(name, fmt.Sprintf("%s-busy-%d", name, i), machineConfigState(nonsense, nonsense)))
		}
	}
	got, err := pools.WaitUntilUpdated(simulation.NewFakeClient(t, all...), checks.Drains{})(t.Context(), engine.Run{})
	if err != nil {
		t.Fatal(err)
	}
	message := got.Message()
	if len(message) > 2048 || !utf8.ValidString(message) || strings.ContainsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("got %d bytes: %s", len(message), message)
	}
	for _, want := range []string{"infra-broken-0 (b usy b usy", "infra-broken-2", "worker", "and 1 more"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message does not say %q: %s", want, message)
		}
	}
}

func TestPools_that_cannot_be_read_are_an_error(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection was refused")
	for name, fails := range map[string]func(any) bool{
		"the cluster version":      func(o any) bool { _, is := o.(*configv1.ClusterVersion); return is },
		"cluster operators":        func(o any) bool { _, is := o.(*configv1.ClusterOperatorList); return is },
		"the machine config pools": func(o any) bool { _, is := o.(*mcfgv1.MachineConfigPoolList); return is },
		"the nodes":                func(o any) bool { _, is := o.(*corev1.NodeList); return is },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := simulation.WithReadErrors(simulation.NewFakeClient(t, version(), operator("4.4.6", "False"), pool("worker", updating)), broken, fails)
			result, err := pools.WaitUntilUpdated(r, checks.Drains{})(t.Context(), engine.Run{})
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v, %v", result, err)
			}
			if all, err := pools.AllUpdated(r, r)(t.Context()); all || !errors.Is(err, broken) {
				t.Errorf("all updated: got %t, %v", all, err)
			}
		})
	}
}
