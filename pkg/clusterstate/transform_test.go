// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestStripNode_keeps_what_is_read(t *testing.T) {
	t.Parallel()
	beat := metav1.NewTime(time.Unix(1000, 0))
	whole := func() *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "worker-0", ResourceVersion: "1", Labels: map[string]string{"role": "worker"},
				Annotations: map[string]string{"machineconfiguration.openshift.io/state": "Done", "stranger": "x"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
			},
			Spec: corev1.NodeSpec{ProviderID: "cloud://1"},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: beat, LastTransitionTime: beat}},
				Images:     []corev1.ContainerImage{{Names: []string{"a"}, SizeBytes: 1}},
				Capacity:   corev1.ResourceList{},
			},
		}
	}
	got, err := clusterstate.StripNode(whole())
	if err != nil {
		t.Fatal(err)
	}
	want := whole()
	want.ManagedFields = nil
	delete(want.Annotations, "stranger")
	want.Spec.ProviderID = ""
	want.Status = corev1.NodeStatus{Conditions: want.Status.Conditions}
	want.Status.Conditions[0].LastHeartbeatTime = metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	if got, err := clusterstate.StripNode("no node"); err != nil || got != "no node" {
		t.Errorf("another object became %v, %v", got, err)
	}
}

// A node keeps all labels because a pool may select it by any of them. Above the limit, it keeps the labels
// that pools usually select by.
func TestStripNode_keeps_roles_of_a_node_with_too_many_labels(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Labels: map[string]string{
		"node-role.kubernetes.io/worker": "", corev1.LabelOSStable: "linux", clusterstate.LabelExtraNodeOf: "uid",
	}}}
	for i := range 1000 {
		node.Labels[fmt.Sprintf("example.com/label-%04d", i)] = "x"
	}
	if _, err := clusterstate.StripNode(node); err != nil {
		t.Fatal(err)
	}
	if n := len(node.Labels); n < 500 || n > 800 {
		t.Errorf("%d labels are kept, want what fits into 16 KiB", n)
	}
	size := 0
	for key, value := range node.Labels {
		size += len(key) + len(value)
	}
	if size > 16<<10 || size < 16<<10-100 {
		t.Errorf("labels of %d bytes are kept, want 16 KiB", size)
	}
	for _, key := range []string{"node-role.kubernetes.io/worker", corev1.LabelOSStable, clusterstate.LabelExtraNodeOf, "example.com/label-0000"} {
		if _, ok := node.Labels[key]; !ok {
			t.Errorf("label %s is dropped", key)
		}
	}
}

func TestStripPool_keeps_a_long_node_selector(t *testing.T) {
	t.Parallel()
	names := slices.Repeat([]string{"ip-10-0-100-200.eu-central-1.compute.internal"}, 200)
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpIn, Values: names,
	}}}
	stripped, err := clusterstate.StripPool(&mcfgv1.MachineConfigPool{Spec: mcfgv1.MachineConfigPoolSpec{NodeSelector: selector.DeepCopy()}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(selector, stripped.(*mcfgv1.MachineConfigPool).Spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
}

// The limit applies to the total of keys, operators, and values, with an extra byte for each value.
func TestStripPDB_bounds_the_selector(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10
	for size, kept := range map[int]bool{limit: true, limit + 1: false} {
		for name, selector := range map[string]*metav1.LabelSelector{
			"labels": {MatchLabels: map[string]string{"app": strings.Repeat("x", size-3)}},
			"values": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{strings.Repeat("x", size-3-2-1-2), "y"}}}},
		} {
			budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
			stripped, err := clusterstate.StripPDB(budget)
			if err != nil {
				t.Fatal(err)
			}
			if got := cmp.Equal(selector, stripped.(*policyv1.PodDisruptionBudget).Spec.Selector); got != kept {
				t.Errorf("%s of %d bytes are kept: %t", name, size, got)
			}
		}
	}
}

// When in doubt, a pod is protected rather than forced too early.
func TestStripPDB_with_a_selector_that_is_too_long_guards_all_pods_of_the_namespace(t *testing.T) {
	t.Parallel()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"pod-0123456789"}, 1000),
	}}}
	stripped, err := clusterstate.StripPDB(budget)
	if err != nil {
		t.Fatal(err)
	}
	again, err := clusterstate.StripPDB(stripped.(*policyv1.PodDisruptionBudget).DeepCopy())
	if diff := cmp.Diff(stripped, again); err != nil || diff != "" {
		t.Errorf("%v (-once +twice):\n%s", err, diff)
	}
	got := clusterstate.PDBOf(stripped.(*policyv1.PodDisruptionBudget))
	if !got.Selects(clusterstate.Pod{Namespace: "shop", Name: "b"}) || got.Selects(clusterstate.Pod{Namespace: "other", Name: "b"}) || got.SelectorError != "" {
		t.Errorf("got %+v, want a budget that selects all pods of its namespace", got)
	}
}

func TestStripPDB_keeps_what_is_read(t *testing.T) {
	t.Parallel()
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pod"}}
	whole := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "a", ResourceVersion: "1", UID: "2", Generation: 3, Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: selector, MinAvailable: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 3, ExpectedPods: 2, CurrentHealthy: 1, DisruptionsAllowed: 1, DesiredHealthy: 1,
			DisruptedPods: map[string]metav1.Time{"pod": {}}, Conditions: []metav1.Condition{
				{Type: "Other"}, {Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no\ncontroller", ObservedGeneration: 3},
			},
		},
	}
	want := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "1", UID: "2", Generation: 3},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: selector, MinAvailable: new(intstr.FromInt32(1)), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 3, ExpectedPods: 2, CurrentHealthy: 1, DesiredHealthy: 1, DisruptionsAllowed: 1, Conditions: []metav1.Condition{
			{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controller"},
		}},
	}
	got, err := clusterstate.StripPDB(whole)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := clusterstate.StripPDB("no budget"); err != nil || got != "no budget" {
		t.Errorf("another object became %v, %v", got, err)
	}
}
