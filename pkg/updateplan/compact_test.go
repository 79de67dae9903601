// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// TestCompact_accepts_the_same draws plans and checks that compacting does not change what a plan accepts.
func TestCompact_accepts_the_same(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids, minutes := rapid.SampledFrom([]string{"node/a", "node/b"}), rapid.IntRange(-3, 90)
		var insights []updatev1beta1.Insight
		for i := range rapid.IntRange(0, 4).Draw(t, "insights") {
			level := rapid.SampledFrom([]updatev1beta1.Level{"info", "warning", "critical"}).Draw(t, "level")
			insights = append(insights, insight(ids.Draw(t, "uid"), strconv.Itoa(i), level))
		}
		plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name("4.4.6")}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: "4.4.6"}}
		plan.Status = reported(insights...)
		plan.Status.FromRelease, plan.Status.LastAnalysisTime = "4.4.5", at(0)
		for range rapid.IntRange(0, 4).Draw(t, "entries") {
			e := entry(ids.Draw(t, "uid"), rapid.SampledFrom([]string{"", "0", "1", "2"}).Draw(t, "uuid"), rapid.IntRange(0, 4).Draw(t, "accepted") > 0)
			e.Reason = rapid.SampledFrom([]string{"", "x"}).Draw(t, "reason")
			if rapid.Bool().Draw(t, "dated") {
				e.AcceptedTime = at(time.Duration(minutes.Draw(t, "at")) * time.Minute)
			}
			plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, e)
		}
		if rapid.Bool().Draw(t, "of another release") {
			plan.Status.Conditions = []metav1.Condition{{
				Type: updatev1beta1.ConditionAcceptanceStale, Status: metav1.ConditionTrue, Reason: updatev1beta1.ReasonFromReleaseChanged,
			}}
		}
		now := noon.Add(time.Duration(rapid.IntRange(0, 59).Draw(t, "now")) * time.Minute)
		compact := plan.DeepCopy()
		updateplan.Compact(compact, "i")
		for _, of := range updateplan.Insights(&compact.Status) {
			i := slices.IndexFunc(insights, func(i updatev1beta1.Insight) bool { return i.UUID == of.Insight.UUID })
			if i < 0 || insights[i].Impact.Level != of.Insight.Impact.Level {
				t.Fatalf("the compact plan has %+v of %+v", of.Insight, insights)
			}
		}
		want, got := updateplan.AcceptedUIDs(plan, "i", "4.4.5", now), updateplan.AcceptedUIDs(compact, "i", "4.4.5", now)
		for uid := range got {
			if !want[uid] {
				t.Fatalf("%s is accepted because the plan is compact", uid)
			}
		}
		future := false
		for _, e := range plan.Spec.AcceptedInsights {
			future = future || e.AcceptedTime != nil && e.AcceptedTime.After(now)
		}
		if diff := cmp.Diff(want, got); diff != "" && !future {
			t.Fatalf("accepted (-full +compact):\n%s", diff)
		}
	})
}

// A compact plan with many accepted insights keeps some of them, all findings of checks, and the unaccepted
// insight that a message names.
func TestCompact_is_bounded(t *testing.T) {
	t.Parallel()
	var insights []updatev1beta1.Insight
	plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name("4.4.6")}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: "4.4.6"}}
	for i := range 1200 {
		uid := fmt.Sprintf("%s/a%d", []string{"api", "node"}[i%2], i)
		insights = append(insights, insight(uid, strconv.Itoa(i), "warning"))
		plan.Spec.AcceptedInsights = append(plan.Spec.AcceptedInsights, entry(uid, "", true))
	}
	plan.Status = reported(append(insights, insight("w", "w", "warning"), insight("e", "e", "error"))...)
	plan.Status.FromRelease, plan.Status.LastAnalysisTime = "4.4.5", at(0)
	updateplan.Compact(plan, "i")
	accepted := updateplan.AcceptedUIDs(plan, "i", "4.4.5", noon)
	if len(accepted) != 512 || accepted["api/a0"] || !accepted["node/a1"] {
		t.Errorf("%d insights are accepted", len(accepted))
	}
	rest := updateplan.Unaccepted(updateplan.JudgePlan(plan, noon))
	if len(rest) != 1 || rest[0].Insight.UID != "e" {
		t.Errorf("not accepted: %v", rest)
	}
}
