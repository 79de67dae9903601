// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// startable returns the versions listed in the UpdateStatus.
func (w *world) startable() []string {
	w.TB.Helper()
	var versions []string
	for _, release := range w.status().Status.StartableReleases {
		if !release.ExpirationTime.After(w.Now()) {
			w.TB.Errorf("%s was to be withdrawn at %s", release.Version, release.ExpirationTime)
		}
		versions = append(versions, release.Version)
	}
	return versions
}

// TestStartableReleases follows a release from the creation of its plan to its withdrawal.
func TestStartableReleases(t *testing.T) {
	t.Parallel()
	const target = "4.4.6"
	w := newWorld(t)
	w.Begin()
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	w.Update(version)
	w.RunFor(time.Minute)
	w.Must(w.User.Create(t.Context(), &updatev1beta1.UpdatePlan{
		ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(target)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: target},
	}))
	w.RunFor(time.Minute)
	if got := w.startable(); got != nil {
		t.Errorf("startable with risks: %v", got)
	}
	plan := &updatev1beta1.UpdatePlan{}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	for _, of := range updateplan.Insights(&plan.Status) {
		plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, updatev1beta1.AcceptedInsight{
			UpdateInformer: of.Informer, UID: of.Insight.UID, UUID: of.Insight.UUID, Accepted: true, Reason: "a test", AcceptedTime: &metav1.Time{Time: w.Now()},
		})
	}
	w.Update(plan)
	w.RunFor(time.Minute)
	if diff := cmp.Diff([]string{target}, w.startable()); diff != "" {
		t.Errorf("once all risks are accepted (-want +got):\n%s", diff)
	}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	plan.Spec.AcceptedInsights[0].Accepted = false
	w.Update(plan)
	w.RunFor(10 * time.Second)
	if got := w.startable(); got != nil {
		t.Errorf("once an acceptance is withdrawn: %v", got)
	}
	w.Must(w.User.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	plan.Spec.AcceptedInsights[0].Accepted = true
	w.Update(plan)
	w.RunFor(30 * time.Second)
	if diff := cmp.Diff([]string{target}, w.startable()); diff != "" {
		t.Errorf("once all risks are accepted again (-want +got):\n%s", diff)
	}
	w.Plan = func(r simulation.Request) simulation.Fault { // from now on, the plan itself cannot be written
		if r.IsWrite() && r.Kind == "UpdatePlan" {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	for range 620 {
		w.RunFor(6 * time.Second)
		w.startable() // none is overdue
	}
	w.Plan = nil
	w.RunFor(time.Hour)
	if got := w.startable(); got != nil {
		t.Errorf("an hour later: %v", got)
	}
	w.Requests = nil
	w.RunFor(10 * time.Hour)
	if len(w.Requests) > 0 {
		t.Errorf("requests for a dormant plan: %v", w.Requests)
	}
}
