// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// +kubebuilder:rbac:groups=config.openshift.io,resources=updateplans,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch

// RequiredPlans declares how the controllers of the operator cache the UpdatePlans that upgrades
// need. The API server serves UpdatePlans only if the Update Status Controller is installed.
func RequiredPlans() manager.Kind {
	return manager.Kind{
		Object: &updatev1beta1.UpdatePlan{}, AddToScheme: updatev1beta1.AddToScheme, ClusterScoped: true, Optional: true, Transform: stripPlan,
	}
}

// stripPlan drops the parts that upgrades do not read from an UpdatePlan before it is cached.
func stripPlan(obj any) (any, error) {
	if plan, ok := obj.(*updatev1beta1.UpdatePlan); ok {
		plan.ObjectMeta = stripMeta(plan.ObjectMeta, updatev1beta1.RefreshAnnotation, 1<<10)
		updateplan.Compact(plan, checks.InformerReadiness)
	}
	return obj, nil
}
