// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

var heartbeat = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func heartbeatNode() *corev1.Node {
	beat := metav1.NewTime(heartbeat)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "worker-0", ResourceVersion: "1", Labels: map[string]string{"role": "worker"},
			Annotations: map[string]string{"machineconfiguration.openshift.io/state": "Done"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "cloud://1"},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: beat, LastTransitionTime: beat}},
			Images:     []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: 1}},
			Capacity:   corev1.ResourceList{},
		},
	}
}

func TestNodeChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat": {change: func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(heartbeat.Add(time.Minute))
		}},
		"image pulled": {change: func(n *corev1.Node) { n.Status.Images = nil }},
		"not ready":    {change: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, want: true},
		"cordoned":     {change: func(n *corev1.Node) { n.Spec.Unschedulable = true }, want: true},
		"tainted": {change: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeDiskPressure}}
		}, want: true},
		"a taint that is not read": {change: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }},
		"labeled":                  {change: func(n *corev1.Node) { n.Labels["role"] = "infra" }, want: true},
		"annotated":                {change: func(n *corev1.Node) { n.Annotations["machineconfiguration.openshift.io/state"] = "Working" }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := heartbeatNode(), heartbeatNode()
			c.change(after)
			for _, n := range []*corev1.Node{before, after} {
				if _, err := clusterstate.StripNode(n); err != nil {
					t.Fatal(err)
				}
			}
			if got := (nodeChangedPredicate{}).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
	if !(nodeChangedPredicate{}).Update(event.UpdateEvent{}) {
		t.Error("another kind is not selected")
	}
}
