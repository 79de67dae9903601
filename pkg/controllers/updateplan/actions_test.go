// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// create creates the plan for a release.
func (w *world) create(release string) {
	w.TB.Helper()
	w.Create(&updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: release}})
}

// change changes the plan for the target.
func (w *world) change(change func(*updatev1beta1.UpdatePlan)) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.get(target), change)
}

// setOperator sets whether the operator dns is degraded.
func (w *world) setOperator(degraded configv1.ConditionStatus) {
	w.TB.Helper()
	w.Must(w.Set(operator("dns", degraded)))
}

// setVersion changes the ClusterVersion.
func (w *world) setVersion(change func(*configv1.ClusterVersion)) {
	w.TB.Helper()
	version := simulation.Get(w.Harness, clusterstate.VersionKey, &configv1.ClusterVersion{})
	change(version)
	w.Must(w.Set(version))
}
