// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package approval_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/approval"
)

func TestWaitUntilApproved(t *testing.T) {
	t.Parallel()
	approved := metav1.Condition{Type: "Approved", Status: "True", ObservedGeneration: 3, Reason: "CHG0042", Message: "by Ada\x1b[2J"}
	denied, unknown, outdated, other := approved, approved, approved, approved
	denied.Status, unknown.Status, outdated.ObservedGeneration, other.Type = "False", "Unknown", 2, "ApprovedElsewhere"
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		passes     bool
		want       engine.Result
	}{
		"no condition":          {want: engine.Wait("ApprovalAwaited", "waiting for the condition Approved in status.conditions")},
		"another condition":     {conditions: []metav1.Condition{other}, want: engine.Wait("ApprovalAwaited", "waiting for the condition Approved in status.conditions")},
		"approved":              {conditions: []metav1.Condition{approved}, passes: true, want: engine.Done("approved: CHG0042: by Ada")},
		"denied":                {conditions: []metav1.Condition{denied}, want: engine.Wait("ApprovalDenied", "not approved: CHG0042: by Ada")},
		"unknown":               {conditions: []metav1.Condition{unknown}, want: engine.Wait("ApprovalDenied", "not approved: CHG0042: by Ada")},
		"an approval of before": {conditions: []metav1.Condition{outdated}, want: engine.Wait("ApprovalOutdated", "the condition Approved is for generation 2 of the spec, but the current generation is 3")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "cluster", Generation: 3}}
			cfg.Status.Conditions = tc.conditions
			reader := fake.NewClientBuilder().WithScheme(simulation.NewScheme()).WithObjects(cfg).Build()
			got, err := approval.WaitUntilApproved(reader, cfg)(t.Context(), engine.Run{})
			if err != nil || got != tc.want || got.Passed() != tc.passes {
				t.Errorf("got %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
	gone := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "gone"}}
	if got, err := approval.WaitUntilApproved(fake.NewClientBuilder().WithScheme(simulation.NewScheme()).Build(), gone)(t.Context(), engine.Run{}); err == nil || got.Passed() {
		t.Errorf("an UpgradeConfig that cannot be read passes: %+v, %v", got, err)
	}
}
