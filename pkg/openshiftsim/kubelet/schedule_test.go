// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestSchedule_fits(t *testing.T) {
	t.Parallel()
	taint := corev1.Taint{Key: "role", Value: "master", Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct {
		node corev1.NodeSpec
		is   corev1.ConditionStatus
		pod  corev1.PodSpec
		fits bool
	}{
		"ready node":               {is: corev1.ConditionTrue, fits: true},
		"node not ready":           {is: corev1.ConditionFalse},
		"node with unknown status": {is: corev1.ConditionUnknown},
		"cordoned node":            {is: corev1.ConditionTrue, node: corev1.NodeSpec{Unschedulable: true}},
		"tainted node":             {is: corev1.ConditionTrue, node: corev1.NodeSpec{Taints: []corev1.Taint{taint}}},
		"tolerated taint": {
			is: corev1.ConditionTrue, node: corev1.NodeSpec{Taints: []corev1.Taint{taint}}, fits: true,
			pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "role", Value: "master"}}},
		},
		"all taints tolerated": {
			is: corev1.ConditionTrue, node: corev1.NodeSpec{Taints: []corev1.Taint{taint}}, fits: true,
			pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		},
		"taint with another effect tolerated": {
			is: corev1.ConditionTrue, node: corev1.NodeSpec{Taints: []corev1.Taint{taint}},
			pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "role", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}},
		},
		"node without the selected labels": {is: corev1.ConditionTrue, pod: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}},
		"node with the selected labels":    {is: corev1.ConditionTrue, pod: corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, fits: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"zone": "a"}},
				Spec:       test.node,
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.is}}},
			}
			if got := fits(&corev1.Pod{Spec: test.pod}, node); got != test.fits {
				t.Errorf("it fits: %t, want %t", got, test.fits)
			}
		})
	}
}

func TestReboot_ends_and_SetDown_does_not(t *testing.T) {
	t.Parallel()
	k := &Kubelets{wake: make(chan event.GenericEvent, 9), nodes: map[string]*machine{}}
	start := time.Now()
	k.Reboot("a", time.Minute, start)
	k.Reboot("a", time.Hour, start.Add(time.Second)) // it is already rebooting
	if up, boots, remaining := k.State("a", start.Add(20*time.Second)); up || boots != 1 || remaining != 40*time.Second {
		t.Errorf("during the reboot: up %t, boots %d, back in %s", up, boots, remaining)
	}
	if up, _, _ := k.State("a", start.Add(time.Minute)); !up {
		t.Error("it is not back after the reboot")
	}
	k.SetDown("a", true)
	if up, _, remaining := k.State("a", start.Add(time.Hour)); up || remaining != 0 {
		t.Errorf("without its plug: up %t, back in %s", up, remaining)
	}
}

func TestReboot_between_two_reconciles_is_reported(t *testing.T) {
	t.Parallel()
	c := simulation.NewFakeClient(t)
	k := &Kubelets{client: c, clock: clock.RealClock{}, options: Options{StatusInterval: time.Hour}, wake: make(chan event.GenericEvent, 9), nodes: map[string]*machine{}}
	if err := Register(t.Context(), c, time.Now(), "a", true, nil, nil); err != nil {
		t.Fatal(err)
	}
	k.Reboot("a", time.Millisecond, time.Now().Add(-time.Second)) // it is up again
	node := &corev1.Node{}
	node.Name = "a"
	if _, err := k.reconcileNode(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(node)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if !k.IsReady(node, time.Now()) {
		t.Errorf("the node reports %+v after a reboot", node.Status.NodeInfo)
	}
}
