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
	w.t.Helper()
	var versions []string
	for _, release := range w.status().Status.StartableReleases {
		if !release.ExpirationTime.After(w.Now()) {
			w.t.Errorf("%s was to be withdrawn at %s", release.Version, release.ExpirationTime)
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
	w.start()
	version := w.script.ClusterVersion()
	version.Spec.Channel = w.script.Channel
	must(t, w.client.Update(t.Context(), version))
	w.runFor(time.Minute)
	must(t, w.client.Create(t.Context(), &updatev1beta1.UpdatePlan{
		ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(target)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: target},
	}))
	w.runFor(time.Minute)
	if got := w.startable(); got != nil {
		t.Errorf("startable with risks: %v", got)
	}
	plan := &updatev1beta1.UpdatePlan{}
	must(t, w.client.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	for _, of := range updateplan.Insights(&plan.Status) {
		plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, updatev1beta1.AcceptedInsight{
			UpdateInformer: of.Informer, UID: of.Insight.UID, UUID: of.Insight.UUID, Accepted: true, Reason: "a test", AcceptedTime: &metav1.Time{Time: w.Now()},
		})
	}
	must(t, w.client.Update(t.Context(), plan))
	w.runFor(time.Minute)
	if diff := cmp.Diff([]string{target}, w.startable()); diff != "" {
		t.Errorf("once all risks are accepted (-want +got):\n%s", diff)
	}
	must(t, w.client.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	plan.Spec.AcceptedInsights[0].Accepted = false
	must(t, w.client.Update(t.Context(), plan))
	w.runFor(10 * time.Second)
	if got := w.startable(); got != nil {
		t.Errorf("once an acceptance is withdrawn: %v", got)
	}
	must(t, w.client.Get(t.Context(), client.ObjectKey{Name: updateplan.Name(target)}, plan))
	plan.Spec.AcceptedInsights[0].Accepted = true
	must(t, w.client.Update(t.Context(), plan))
	w.runFor(30 * time.Second)
	if diff := cmp.Diff([]string{target}, w.startable()); diff != "" {
		t.Errorf("once all risks are accepted again (-want +got):\n%s", diff)
	}
	w.plan = func(r simulation.Request) simulation.Fault { // from here on, writes of the plan fail
		if r.IsWrite() && r.Kind == "UpdatePlan" {
			return simulation.Fault{Outcome: simulation.Refuse}
		}
		return simulation.Fault{}
	}
	for range 620 {
		w.runFor(6 * time.Second)
		w.startable() // no release is past its expiration
	}
	w.plan = nil
	w.runFor(time.Hour)
	if got := w.startable(); got != nil {
		t.Errorf("an hour later: %v", got)
	}
	w.requests = nil
	w.runFor(10 * time.Hour)
	if len(w.requests) > 0 {
		t.Errorf("requests for a dormant plan: %v", w.requests)
	}
}
