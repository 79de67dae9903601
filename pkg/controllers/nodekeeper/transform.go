// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// StripPDB drops from a PodDisruptionBudget, before it is cached, all but the
// pods that it guards and whether it lets any of them go.
func StripPDB(obj any) (any, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return obj, nil
	}
	spec, status := budget.Spec, budget.Status
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: budget.Namespace, Name: budget.Name, UID: budget.UID,
			ResourceVersion: budget.ResourceVersion, Generation: budget.Generation,
		},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: spec.Selector, UnhealthyPodEvictionPolicy: spec.UnhealthyPodEvictionPolicy},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: status.ObservedGeneration, ExpectedPods: status.ExpectedPods,
			CurrentHealthy: status.CurrentHealthy, DisruptionsAllowed: status.DisruptionsAllowed,
			Conditions: clusterstate.StripPDBConditions(status.Conditions),
		},
	}, nil
}
