// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// plans records the latest plans.
type plans struct {
	ignored

	latest *[]metrics.PlanSnapshot
}

func (p plans) SetPlans(all []metrics.PlanSnapshot) { *p.latest = all }

// TestReconciler_observes_plans waits until a plan is too old. Invalid plans are not shown.
func TestReconciler_observes_plans(t *testing.T) {
	t.Parallel()
	analyzed := simulation.Start.UTC()
	plan := func(release string) *updatev1beta1.UpdatePlan {
		p := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: release}}
		p.Status.FromRelease, p.Status.LastAnalysisTime = newRelease, new(metav1.NewTime(analyzed))
		updateplan.Settle(p, nil, updateplan.Analysis{Now: analyzed, Current: newRelease})
		return p
	}
	startable, risky, invalid := plan("4.9.1"), plan("4.9.2"), plan("4.9.3")
	risk := updatev1beta1.Insight{UID: "disk", UUID: "disk", Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning}}
	updateplan.Settle(risky, []updateplan.Reported{{Informer: "shop", Insight: risk}}, updateplan.Analysis{Now: analyzed, Current: newRelease})
	invalid.Name = "other"
	objects := append(largeCluster(20), startable, risky, invalid)
	clock := clocktesting.NewFakePassiveClock(analyzed.Add(time.Minute))
	c := simulation.NewFakeClient(t, objects...)
	var got []metrics.PlanSnapshot
	r := &updatestatus.Reconciler{
		Client: c, Live: c, Clock: clock, Answers: func() []insight.Answer { return nil }, Events: &world{Harness: &simulation.Harness{TB: t}, changes: map[string]bool{}}, Metrics: plans{latest: &got},
	}
	want := []metrics.PlanSnapshot{{Release: "4.9.1", Startable: true, Analyzed: analyzed}, {Release: "4.9.2", Unaccepted: 1, Analyzed: analyzed}}
	for _, after := range []time.Duration{time.Minute, time.Hour} {
		want[0].Startable = after < time.Hour
		clock.SetTime(analyzed.Add(after))
		if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
	}
}
