// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrimBudget drops from a PodDisruptionBudget, before it is cached, all but the
// pods that it guards. How many of them may be away is the Eviction API's affair.
func TrimBudget(obj any) (any, error) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return obj, nil
	}
	budget.ObjectMeta = metav1.ObjectMeta{
		Namespace: budget.Namespace, Name: budget.Name, UID: budget.UID, ResourceVersion: budget.ResourceVersion,
	}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{Selector: budget.Spec.Selector}
	budget.Status = policyv1.PodDisruptionBudgetStatus{}
	return budget, nil
}
