// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// RefreshToken returns the token in the annotation that requests an analysis, in the form that the status
// uses after the analysis has started.
func RefreshToken(plan *updatev1beta1.UpdatePlan) string {
	const maxToken = 64
	token := plan.Annotations[updatev1beta1.RefreshAnnotation]
	return strings.ToValidUTF8(token[:min(len(token), maxToken)], "") // the cut may split a character
}

// IsAnalyzed reports whether the latest requested analysis is complete.
func IsAnalyzed(plan *updatev1beta1.UpdatePlan) bool {
	return HasBegun(plan) && meta.IsStatusConditionTrue(plan.Status.Conditions, updatev1beta1.ConditionComplete)
}

// HasBegun reports whether the latest requested analysis has started.
func HasBegun(plan *updatev1beta1.UpdatePlan) bool {
	return plan.Status.FromRelease != "" && plan.Status.LastRefresh == RefreshToken(plan)
}

// JudgePlan returns the verdicts for the insights in the plan's status. The status may not show all of them;
// whether the update may be started is decided by the plan's conditions.
func JudgePlan(plan *updatev1beta1.UpdatePlan, now time.Time) []Judged {
	return Judge(plan.Spec.AcceptedInsights, Insights(&plan.Status), Scope{Now: now, IgnoreUndated: isForOtherRelease(plan)})
}

// AcceptedUIDs returns the UIDs of an informer's insights that are accepted for an update from a release. It
// returns nil if the plan was analyzed for another release or too long ago.
func AcceptedUIDs(plan *updatev1beta1.UpdatePlan, informer, from string, now time.Time) map[string]bool {
	analyzed := plan.Status.LastAnalysisTime
	if from == "" || plan.Status.FromRelease != from || Validate(plan) != nil || analyzed == nil || !IsRecent(analyzed.Time, now) {
		return nil
	}
	accepted := map[string]bool{}
	for _, j := range JudgePlan(plan, now) {
		if j.Informer == informer && j.Verdict == VerdictAccepted {
			accepted[j.Insight.UID] = true
		}
	}
	for _, j := range JudgePlan(plan, now) { // several insights may share a UID
		if j.Informer == informer && j.Verdict != VerdictAccepted {
			delete(accepted, j.Insight.UID)
		}
	}
	return accepted
}
