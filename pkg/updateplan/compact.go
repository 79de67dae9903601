// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits of a compact plan. A plan that exceeds them accepts fewer insights.
const (
	maxCompactAccepted = 512 // the limit of a plan's spec
	maxCompactText     = 256 // in bytes
)

// Compact reduces a plan to the parts that upgrades read, for caching: the conditions and counts, the most
// severe unaccepted insight, and the accepted findings of checks reported by one informer, each with the
// acceptance that counts. Compacting never makes a plan accept more.
func Compact(plan *updatev1beta1.UpdatePlan, informer string) {
	// Acceptance times in the future are rejected when the plan is used, not here.
	scope := Scope{Now: time.Unix(1<<40, 0), IgnoreUndated: isForOtherRelease(plan)}
	all := Insights(&plan.Status)
	judged := Judge(plan.Spec.AcceptedInsights, all, scope)
	var kept []updatev1beta1.InformerInsights
	var entries []updatev1beta1.AcceptedInsight
	for _, j := range judged {
		if j.Verdict != VerdictAccepted || j.Informer != informer || !checks.IsPlanUID(j.Insight.UID) || len(kept) == maxCompactAccepted || isOtherwiseUnaccepted(judged, &j) {
			continue
		}
		kept = append(kept, compactInsight(&j.Reported))
		entries = append(entries, compactEntry(plan.Spec.AcceptedInsights, &j, isUnique(all, &j), scope))
	}
	if rest := Unaccepted(judged); len(rest) > 0 {
		kept = append(kept, compactInsight(&rest[0].Reported))
	}
	status := &plan.Status
	plan.Spec = updatev1beta1.UpdatePlanSpec{TargetRelease: bounded(plan.Spec.TargetRelease), AcceptedInsights: entries}
	plan.Status = updatev1beta1.UpdatePlanStatus{
		Conditions: compactConditions(status.Conditions), ObservedGeneration: status.ObservedGeneration,
		ControlPlane: &updatev1beta1.ControlPlaneStatus{Section: updatev1beta1.Section{UpdateInformers: kept}},
		FromRelease:  bounded(status.FromRelease), LastAnalysisTime: status.LastAnalysisTime, LastRefresh: bounded(status.LastRefresh), Counts: status.Counts,
	}
}

// isOtherwiseUnaccepted reports whether another insight with the same uid is not accepted.
func isOtherwiseUnaccepted(judged []Judged, of *Judged) bool {
	for i := range judged {
		if judged[i].Informer == of.Informer && judged[i].Insight.UID == of.Insight.UID && judged[i].Verdict != VerdictAccepted {
			return true
		}
	}
	return false
}

// isUnique reports whether no other insight has the same informer and uid.
func isUnique(all []Reported, of *Judged) bool {
	n := 0
	for i := range all {
		if all[i].Informer == of.Informer && all[i].Insight.UID == of.Insight.UID {
			n++
		}
	}
	return n == 1
}

// bounded returns a text, or "" if it is longer than the API allows. It does not truncate, because a
// truncated name could match something else.
func bounded(value string) string {
	if len(value) > maxCompactText {
		return ""
	}
	return value
}

func compactInsight(of *Reported) updatev1beta1.InformerInsights {
	insight := updatev1beta1.Insight{UID: bounded(of.Insight.UID), UUID: bounded(of.Insight.UUID), FirstObservedTime: of.Insight.FirstObservedTime}
	insight.Impact.Level = of.Insight.Impact.Level
	if len(insight.Impact.Level) > maxCompactText {
		insight.Impact.Level = updatev1beta1.LevelCritical
	}
	return updatev1beta1.InformerInsights{Name: bounded(of.Informer), Insights: []updatev1beta1.Insight{insight}}
}

// compactEntry returns the acceptance that counts for an insight, reduced to that insight.
func compactEntry(entries []updatev1beta1.AcceptedInsight, of *Judged, unique bool, scope Scope) updatev1beta1.AcceptedInsight {
	entry := updatev1beta1.AcceptedInsight{UpdateInformer: bounded(of.Informer), UID: bounded(of.Insight.UID), UUID: bounded(of.Insight.UUID), Accepted: true}
	first := true
	for i := range entries {
		e := &entries[i]
		if !matches(e, &of.Reported) || verdictOf(e, &of.Reported, unique, scope) != VerdictAccepted {
			continue
		}
		if first || e.AcceptedTime.Before(entry.AcceptedTime) {
			entry.AcceptedTime, entry.Reason = e.AcceptedTime, text.Truncate(e.Reason, 1)
		}
		first = false
	}
	return entry
}

// compactConditions returns the conditions that Compact keeps.
func compactConditions(all []metav1.Condition) []metav1.Condition {
	var kept []metav1.Condition
	seen := map[string]bool{}
	for _, c := range all {
		switch c.Type {
		case updatev1beta1.ConditionComplete, updatev1beta1.ConditionStartable, updatev1beta1.ConditionAcceptanceStale,
			history.ConditionReady, history.ConditionReconciling, history.ConditionStalled:
			if !seen[c.Type] {
				c.Reason, c.Message, seen[c.Type] = bounded(c.Reason), text.Truncate(c.Message, maxMessage), true
				kept = append(kept, c)
			}
		}
	}
	return kept
}
