// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const old, newer = "rendered-old", "rendered-new"

func node(name, current, desired, state string, is corev1.ConditionStatus, cordoned bool) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{CurrentConfig: current, DesiredConfig: desired, State: state, Reason: "it is so"}},
		Spec:       corev1.NodeSpec{Unschedulable: cordoned},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: is}}},
	}
}

func TestPool_status(t *testing.T) {
	t.Parallel()
	done := node("done", newer, newer, StateDone, corev1.ConditionTrue, false)
	waiting := node("waiting", old, old, StateDone, corev1.ConditionTrue, false)
	draining := node("draining", old, newer, StateWorking, corev1.ConditionTrue, true)
	rebooting := node("rebooting", old, newer, StateWorking, corev1.ConditionUnknown, true)
	broken := node("broken", old, newer, StateDegraded, corev1.ConditionTrue, true)
	cordoned := node("cordoned", newer, newer, StateDone, corev1.ConditionTrue, true)

	type counts struct{ Machines, Updated, Ready, Unavailable, Degraded int32 }
	tests := map[string]struct {
		nodes         []corev1.Node
		paused        bool
		want          counts
		holds         []mcfgv1.MachineConfigPoolConditionType
		configuration string
	}{
		"all nodes updated": {
			nodes: []corev1.Node{done, done}, want: counts{2, 2, 2, 0, 0}, configuration: newer,
			holds: []mcfgv1.MachineConfigPoolConditionType{"Updated"},
		},
		"no nodes": {
			configuration: newer, holds: []mcfgv1.MachineConfigPoolConditionType{"Updated"},
		},
		"some nodes outdated": {
			nodes: []corev1.Node{done, draining, rebooting, waiting}, want: counts{4, 1, 1, 2, 0}, configuration: old,
			holds: []mcfgv1.MachineConfigPoolConditionType{"Updating"},
		},
		"paused": {
			nodes: []corev1.Node{done, waiting}, paused: true, want: counts{2, 1, 1, 0, 0}, configuration: old,
		},
		"node degraded": {
			nodes: []corev1.Node{broken, done}, want: counts{2, 1, 1, 1, 1}, configuration: old,
			holds: []mcfgv1.MachineConfigPoolConditionType{"Degraded", "NodeDegraded", "Updating"},
		},
		"node cordoned": {
			nodes: []corev1.Node{cordoned, done}, want: counts{2, 2, 1, 1, 0}, configuration: old,
			holds: []mcfgv1.MachineConfigPoolConditionType{"Updating"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &mcfgv1.MachineConfigPool{}
			pool.Spec.Paused = test.paused
			pool.Spec.Configuration.Name = newer
			pool.Status.Configuration.Name = old
			syncPoolStatus(pool, test.nodes, time.Now())
			s := pool.Status
			got := counts{s.MachineCount, s.UpdatedMachineCount, s.ReadyMachineCount, s.UnavailableMachineCount, s.DegradedMachineCount}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			held := map[mcfgv1.MachineConfigPoolConditionType]bool{}
			for _, condition := range s.Conditions {
				if condition.Status == corev1.ConditionTrue {
					held[condition.Type] = true
				}
			}
			want := map[mcfgv1.MachineConfigPoolConditionType]bool{}
			for _, kind := range test.holds {
				want[kind] = true
			}
			if diff := cmp.Diff(want, held); diff != "" {
				t.Errorf("conditions that hold (-want +got):\n%s", diff)
			}
			if s.Configuration.Name != test.configuration {
				t.Errorf("configuration is %s, want %s", s.Configuration.Name, test.configuration)
			}
		})
	}
}

func TestPool_of_a_node(t *testing.T) {
	t.Parallel()
	var pools []mcfgv1.MachineConfigPool
	for _, name := range []string{"infra", Master, Worker} {
		pools = append(pools, mcfgv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: mcfgv1.MachineConfigPoolSpec{
				NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{rolePrefix + name: ""}},
			},
		})
	}
	for want, roles := range map[string][]string{
		Master: {Master, "control-plane"}, Worker: {Worker}, "infra": {Worker, "infra"}, "": {"edge"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
		for _, role := range roles {
			node.Labels[rolePrefix+role] = ""
		}
		if got := owner(node, pools); got != want {
			t.Errorf("a node of roles %v belongs to %q, want %q", roles, got, want)
		}
	}
}

func TestMaxUnavailable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "2": 2, "0": 1, "50%": 3, "1%": 1} {
		pool := &mcfgv1.MachineConfigPool{}
		if text != "" {
			limit := intstr.Parse(text)
			pool.Spec.MaxUnavailable = &limit
		}
		if got := maxUnavailable(pool, 7); got != want {
			t.Errorf("maxUnavailable %q of 7 nodes lets %d be unavailable, want %d", text, got, want)
		}
	}
}
