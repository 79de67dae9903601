// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	w.must(w.RunFor(d))
}

// create creates the plan of a release.
func (w *world) create(release string) {
	w.t.Helper()
	w.must(w.user.Create(w.t.Context(), &v1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: v1beta1.UpdatePlanSpec{TargetRelease: release}}))
}

// change changes the plan of the target.
func (w *world) change(change func(*v1beta1.UpdatePlan)) {
	w.t.Helper()
	plan := w.get(target)
	change(plan)
	w.must(w.user.Update(w.t.Context(), plan))
}

// setOperator sets whether the operator dns is degraded.
func (w *world) setOperator(degraded configv1.ConditionStatus) {
	w.t.Helper()
	w.must(w.Set(operator("dns", degraded)))
}

// setVersion changes the ClusterVersion.
func (w *world) setVersion(change func(*configv1.ClusterVersion)) {
	w.t.Helper()
	var version configv1.ClusterVersion
	w.must(w.user.Get(w.t.Context(), clusterstate.VersionKey, &version))
	change(&version)
	w.must(w.Set(&version))
}
