// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestBudgetChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		want   bool
	}{
		"more pods":                 {func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods, b.Status.CurrentHealthy = 4, 4 }, false},
		"more disruptions":          {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 2 }, false},
		"no disruptions":            {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 0 }, true},
		"changed spec":              {func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }, true},
		"changed and observed spec": {func(b *policyv1.PodDisruptionBudget) { b.Generation, b.Status.ObservedGeneration = 2, 2 }, false},
		"no pods": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.DisruptionsAllowed, b.Status.ExpectedPods, b.Status.CurrentHealthy = 0, 0, 0
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			before.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 3, CurrentHealthy: 3, DisruptionsAllowed: 1}
			after := before.DeepCopy()
			c.change(after)
			if got := (pdbChangedPredicate{}).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if !(pdbChangedPredicate{}).Update(event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: &corev1.Node{}}) {
		t.Error("another kind is not selected")
	}
}
