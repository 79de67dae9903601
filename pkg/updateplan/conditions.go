// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// MaxAge is how long after its analysis a plan is followed and allows starting the update.
const MaxAge = time.Hour

// Reasons of conditions that only UpdatePlans use.
const (
	// ReasonComplete is the reason if all informers have answered.
	ReasonComplete = "AnalysisComplete"
	// ReasonStartable is the reason if the update may be started.
	ReasonStartable = "AllInsightsAccepted"
	// ReasonCurrent is the reason if all acceptances refer to what is reported now.
	ReasonCurrent = "Current"
	// ReasonInvalidPlan is the reason if the release is malformed or the plan's name does not match it.
	ReasonInvalidPlan = "InvalidPlan"
)

// maxMessage limits the message of a condition, in bytes.
const maxMessage = 1024

// Analysis holds the input for a plan's conditions, other than its insights.
type Analysis struct {
	Now time.Time
	// Waiting names the informers that have not answered yet.
	Waiting []string
	// Missing names the informers that were enabled after the analysis completed and have not answered yet.
	Missing []string
	// Current is the cluster's release, or empty if it is unknown.
	Current string
	// NotAnUpdate explains why an update to the target is impossible, or is empty.
	NotAnUpdate string
	// Published is set if the insights come from the status, which may be too small for all of them.
	Published bool
	// FromReleaseChanged is set in the first analysis for the cluster's current release.
	FromReleaseChanged bool
}

// Settle sets the counts and conditions of a plan. It needs all insights because the status may not contain
// all of them.
func Settle(plan *updatev1beta1.UpdatePlan, all []Reported, a Analysis) {
	status := &plan.Status
	ignoreUndated := a.FromReleaseChanged && len(plan.Spec.AcceptedInsights) > 0 || isForOtherRelease(plan)
	judged := Judge(plan.Spec.AcceptedInsights, all, Scope{Now: a.Now, IgnoreUndated: ignoreUndated})
	status.Counts = new(count(plan, judged, a.Published))
	s := setter{plan, a.Now}
	stale := s.staleness(judged, ignoreUndated)
	complete := completeness(plan, a)
	s.set(complete)
	s.set(startability(plan, a, judged))
	s.set(stale)
	level := readiness.Reconciling
	if complete.Reason == ReasonInvalidPlan {
		level = readiness.Stalled
	}
	readiness.Of(complete, level).Set(&plan.Status.Conditions, plan.Generation, a.Now)
	status.ObservedGeneration = plan.Generation
}

// count returns the counts of a plan. Insights that the status does not show keep their previous counts. Once
// the spec has changed, they count as not accepted because it is unknown how many were accepted.
func count(plan *updatev1beta1.UpdatePlan, judged []Judged, published bool) updatev1beta1.InsightCounts {
	counts, before := Count(judged), plan.Status.Counts
	if !published || before == nil || before.Total <= counts.Total {
		return counts
	}
	if plan.Status.ObservedGeneration == plan.Generation {
		return *before
	}
	counts.Unaccepted += before.Total - counts.Total
	counts.Total = before.Total
	return counts
}

// isForOtherRelease reports whether the plan's undated acceptances were given for another release of the
// cluster. They were if the spec has not changed since the release did.
func isForOtherRelease(plan *updatev1beta1.UpdatePlan) bool {
	stale := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionAcceptanceStale)
	return stale != nil && stale.Status == metav1.ConditionTrue && stale.Reason == updatev1beta1.ReasonFromReleaseChanged &&
		stale.ObservedGeneration == plan.Generation
}

// setter sets conditions.
type setter struct {
	plan *updatev1beta1.UpdatePlan
	now  time.Time
}

func (s setter) set(c metav1.Condition) {
	c.Message = text.Truncate(c.Message, maxMessage)
	readiness.SetCondition(&s.plan.Status.Conditions, c, cmp.Or(c.ObservedGeneration, s.plan.Generation), s.now)
}

func condition(name string, holds bool, reason, format string, args ...any) metav1.Condition {
	c := metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if holds {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func completeness(plan *updatev1beta1.UpdatePlan, a Analysis) metav1.Condition {
	if err := Validate(plan); err != nil {
		return condition(updatev1beta1.ConditionComplete, false, ReasonInvalidPlan, "%v", err)
	}
	if plan.Status.LastAnalysisTime == nil && len(a.Waiting) == 0 {
		return condition(updatev1beta1.ConditionComplete, false, updatev1beta1.ReasonWaitingForInformers, "the update was not analyzed yet")
	}
	if waiting := append(slices.Clone(a.Waiting), a.Missing...); len(waiting) > 0 {
		return condition(updatev1beta1.ConditionComplete, false, updatev1beta1.ReasonWaitingForInformers, "waiting for the answer of %s", text.JoinNames(waiting))
	}
	return condition(updatev1beta1.ConditionComplete, true, ReasonComplete, "each informer has answered")
}

// startability returns the condition Startable. It fails closed and reports the first obstacle.
func startability(plan *updatev1beta1.UpdatePlan, a Analysis, judged []Judged) metav1.Condition {
	no := func(reason, format string, args ...any) metav1.Condition {
		return condition(updatev1beta1.ConditionStartable, false, reason, format, args...)
	}
	status, target := &plan.Status, plan.Spec.TargetRelease
	if err := Validate(plan); err != nil {
		return no(ReasonInvalidPlan, "%v", err)
	}
	rest := Unaccepted(judged)
	switch {
	case a.NotAnUpdate != "":
		return no(updatev1beta1.ReasonNotAnUpdate, "%s", a.NotAnUpdate)
	case a.Current == "" || status.FromRelease != a.Current:
		return no(updatev1beta1.ReasonFromReleaseChanged, "the update was analyzed from %q, and the cluster is at %q", status.FromRelease, a.Current)
	case len(a.Waiting) > 0 || status.LastAnalysisTime == nil:
		return no(updatev1beta1.ReasonWaitingForInformers, "the analysis is not complete")
	case len(a.Missing) > 0:
		return no(updatev1beta1.ReasonInformerMissing, "the analysis lacks the answer of %s", text.JoinNames(a.Missing))
	case !IsRecent(status.LastAnalysisTime.Time, a.Now):
		return no(updatev1beta1.ReasonAnalysisTooOld, "the analysis is of %s; request another one", text.FormatTime(status.LastAnalysisTime.Time))
	case len(rest) > 0:
		return no(updatev1beta1.ReasonUnacceptedInsights, "not accepted: %s", describe(rest))
	}
	if worse := worsenedSinceReview(plan); len(worse) > 0 {
		return no(updatev1beta1.ReasonInsightsChanged, "risks are more severe than when they were reviewed: %s", text.JoinNames(worse))
	}
	if status.FromRelease == target {
		return condition(updatev1beta1.ConditionStartable, true, ReasonStartable, "the update of worker nodes to %s may be started until %s",
			target, text.FormatTime(status.LastAnalysisTime.Add(MaxAge)))
	}
	return condition(updatev1beta1.ConditionStartable, true, ReasonStartable, "an update from %s to %s may be started until %s",
		status.FromRelease, target, text.FormatTime(status.LastAnalysisTime.Add(MaxAge)))
}

// staleness returns the condition AcceptanceStale.
func (s setter) staleness(judged []Judged, forOtherRelease bool) metav1.Condition {
	stale := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool {
		return !slices.Contains([]AcceptanceVerdict{VerdictStale, VerdictAhead, VerdictAmbiguous, VerdictIncomplete}, j.Verdict)
	})
	switch {
	case forOtherRelease:
		return condition(updatev1beta1.ConditionAcceptanceStale, true, updatev1beta1.ReasonFromReleaseChanged,
			"the release of the cluster has changed since risks were accepted; accept them again")
	case len(stale) > 0:
		return condition(updatev1beta1.ConditionAcceptanceStale, true, updatev1beta1.ReasonInsightsChanged, "accept again: %s", describe(stale))
	}
	return condition(updatev1beta1.ConditionAcceptanceStale, false, ReasonCurrent, "each acceptance is about what is reported now")
}

// describe lists insights and why they are not accepted.
func describe(judged []Judged) string {
	names := make([]string, len(judged))
	for i := range judged {
		j := &judged[i]
		names[i] = j.Informer + " " + j.Insight.UID
		if why := explanations[j.Verdict]; why != "" {
			names[i] = text.WithReason(names[i], why)
		}
	}
	const shown = 3
	if more := len(names) - shown; more > 0 { // the most severe insights come first; sorting by name would hide them
		return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// explanations explains why an insight is not accepted although an entry matches it.
var explanations = map[AcceptanceVerdict]string{
	VerdictRefused:    "accepted: false",
	VerdictAmbiguous:  "several insights have this uid; accept one by its uuid",
	VerdictStale:      "accepted before it was observed",
	VerdictAhead:      "accepted at a time in the future: the clocks differ",
	VerdictIncomplete: "critical: accept it by its uuid and with a reason",
}

// IsStartable reports whether the plan is Startable for its current spec and the analysis is recent enough.
func IsStartable(plan *updatev1beta1.UpdatePlan, now time.Time) bool {
	c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == plan.Generation &&
		plan.Status.LastAnalysisTime != nil && IsRecent(plan.Status.LastAnalysisTime.Time, now)
}

// maxAhead is how far in the future the time of an analysis may be. Times are published in whole seconds and
// by other replicas.
const maxAhead = time.Minute

// IsRecent reports whether an analysis is recent enough to be followed and to start the update. An analysis
// in the future is not recent, because the clock was set back and its age is unknown.
func IsRecent(analyzed, now time.Time) bool {
	return now.Before(analyzed.Add(MaxAge)) && !analyzed.After(now.Add(maxAhead))
}

// StartableReleases returns the releases that an update may be started to from the cluster's current release,
// sorted by version and limited to what an UpdateStatus can hold. Each entry must be removed at its
// expiration time.
func StartableReleases(plans []updatev1beta1.UpdatePlan, current string, now time.Time) []updatev1beta1.StartableRelease {
	const most = 32
	var releases []updatev1beta1.StartableRelease
	for i := range plans {
		plan := &plans[i]
		if current == "" || current == plan.Spec.TargetRelease || plan.DeletionTimestamp != nil || plan.Status.FromRelease != current || Validate(plan) != nil || !IsStartable(plan, now) {
			continue
		}
		releases = append(releases, updatev1beta1.StartableRelease{
			Version: plan.Spec.TargetRelease, FromRelease: current,
			ExpirationTime: metav1.NewTime(plan.Status.LastAnalysisTime.Add(MaxAge)),
		})
	}
	slices.SortFunc(releases, func(a, b updatev1beta1.StartableRelease) int { return strings.Compare(a.Version, b.Version) })
	return releases[:min(len(releases), most)]
}
