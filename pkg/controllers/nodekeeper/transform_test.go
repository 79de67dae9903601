// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestOfABudgetItsPodsAndWhatItLetsGoAreKept(t *testing.T) {
	t.Parallel()
	whole := budget("a", "pod")
	whole.ResourceVersion, whole.UID, whole.Labels = "1", "2", map[string]string{"a": "b"}
	whole.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	whole.Spec.MaxUnavailable = new(intstr.FromInt32(0))
	whole.Generation, whole.Spec.UnhealthyPodEvictionPolicy = 3, new(policyv1.AlwaysAllow)
	whole.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: 3, ExpectedPods: 2, CurrentHealthy: 1, DisruptionsAllowed: 1, DesiredHealthy: 1,
		DisruptedPods: map[string]metav1.Time{"pod": {}}, Conditions: []metav1.Condition{
			{Type: "Other"}, {Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no\ncontroller", ObservedGeneration: 3},
		},
	}
	want := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "1", UID: "2", Generation: 3},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: budget("a", "pod").Spec.Selector, UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 3, ExpectedPods: 2, CurrentHealthy: 1, DisruptionsAllowed: 1, Conditions: []metav1.Condition{
			{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "found no controller"},
		}},
	}
	got, err := StripPDB(whole)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := StripPDB("no budget"); err != nil || got != "no budget" {
		t.Errorf("what is no budget became %v, %v", got, err)
	}
}
