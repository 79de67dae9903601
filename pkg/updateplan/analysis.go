// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// RefreshToken returns the token of the annotation that requests an analysis, as the status holds it
// once the analysis has begun.
func RefreshToken(plan *updatev1beta1.UpdatePlan) string {
	const maxToken = 64
	token := plan.Annotations[updatev1beta1.RefreshAnnotation]
	return strings.ToValidUTF8(token[:min(len(token), maxToken)], "") // the end may be within a character
}

// IsAnalyzed reports whether the analysis that was requested last is complete.
func IsAnalyzed(plan *updatev1beta1.UpdatePlan) bool {
	return HasBegun(plan) && meta.IsStatusConditionTrue(plan.Status.Conditions, updatev1beta1.ConditionComplete)
}

// HasBegun reports whether the analysis that was requested last has begun.
func HasBegun(plan *updatev1beta1.UpdatePlan) bool {
	return plan.Status.FromRelease != "" && plan.Status.LastRefresh == RefreshToken(plan)
}

// JudgePlan returns the insights of a plan that need acceptance with their verdicts, as far as its
// status shows them. Its conditions decide whether the update may be started.
func JudgePlan(plan *updatev1beta1.UpdatePlan, now time.Time) []Judged {
	return Judge(plan.Spec.AcceptedInsights, Insights(&plan.Status), Scope{Now: now, IgnoreUndated: isForOtherRelease(plan)})
}

// AcceptedUIDs returns the UIDs of the insights of an informer that are accepted for an update from a
// release of the cluster. It returns none if the analysis is not about that release, or not recent.
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
	for _, j := range JudgePlan(plan, now) { // several insights may have one UID
		if j.Informer == informer && j.Verdict != VerdictAccepted {
			delete(accepted, j.Insight.UID)
		}
	}
	return accepted
}
