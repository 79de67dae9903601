// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"cmp"
	"slices"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reported pairs an insight of a plan with its informer.
type Reported struct {
	Informer string
	Insight  updatev1beta1.Insight
}

// Insights returns the insights of a plan without duplicates, in the order of the status.
func Insights(status *updatev1beta1.UpdatePlanStatus) []Reported {
	var informers []updatev1beta1.InformerInsights
	for _, section := range status.Sections() {
		informers = append(informers, section.UpdateInformers...)
	}
	return Flatten(informers)
}

// Flatten returns the insights of informers without duplicates. The same insight may appear in several pools.
func Flatten(informers []updatev1beta1.InformerInsights) []Reported {
	var all []Reported
	seen := map[string]bool{}
	for i := range informers {
		for j := range informers[i].Insights {
			of := &informers[i].Insights[j]
			if id := identity(informers[i].Name, of); !seen[id] {
				seen[id] = true
				all = append(all, Reported{Informer: informers[i].Name, Insight: *of})
			}
		}
	}
	return all
}

// identity identifies an insight across all informers. UUIDs already include the informer in the hash.
func identity(informer string, of *updatev1beta1.Insight) string {
	return cmp.Or(of.UUID, informer+"\n"+of.UID)
}

// NeedsAcceptance reports whether insights of a level must be accepted before the update may be started.
// Unknown levels must be accepted.
func NeedsAcceptance(level updatev1beta1.Level) bool {
	return level != updatev1beta1.LevelStatus && level != updatev1beta1.LevelInfo
}

// AcceptanceVerdict says whether an insight that needs acceptance is accepted.
type AcceptanceVerdict string

// The verdicts.
const (
	// VerdictAccepted is the verdict for an accepted insight.
	VerdictAccepted AcceptanceVerdict = "Accepted"
	// VerdictUnaccepted is the verdict if there is no decision about the insight.
	VerdictUnaccepted AcceptanceVerdict = "Unaccepted"
	// VerdictRefused is the verdict if the insight is listed with accepted: false.
	VerdictRefused AcceptanceVerdict = "Refused"
	// VerdictAmbiguous is the verdict if the acceptance has no UUID and matches several insights.
	VerdictAmbiguous AcceptanceVerdict = "Ambiguous"
	// VerdictStale is the verdict if the insight was accepted before it was observed, or for another release.
	VerdictStale AcceptanceVerdict = "Stale"
	// VerdictAhead is the verdict if the time of the acceptance is in the future. It would also accept insights
	// that are not known yet.
	VerdictAhead AcceptanceVerdict = "Ahead"
	// VerdictIncomplete is the verdict for a critical insight if its acceptance lacks the UUID or a reason.
	VerdictIncomplete AcceptanceVerdict = "Incomplete"
)

// Judged pairs an insight that needs acceptance with its verdict.
type Judged struct {
	Reported

	Verdict AcceptanceVerdict
}

// Scope limits which acceptances count.
type Scope struct {
	// Now is the current time.
	Now time.Time
	// IgnoreUndated ignores acceptances without a time because they were given before the cluster changed its
	// release.
	IgnoreUndated bool
}

// Judge returns the insights that need acceptance, with their verdicts, in the given order.
//
// An acceptance names an informer, a uid, and optionally a UUID. Without a UUID, it counts only if exactly
// one insight matches. With a time, it covers what had been observed by then: an insight first observed later
// needs another acceptance. Without a time, it counts until the cluster changes its release. A critical
// insight needs a UUID and a reason. An entry with accepted: false always wins.
func Judge(entries []updatev1beta1.AcceptedInsight, all []Reported, scope Scope) []Judged {
	matching := map[[2]string]int{} // the number of insights, by informer and uid
	for i := range all {
		matching[[2]string{all[i].Informer, all[i].Insight.UID}]++
	}
	var judged []Judged
	for i := range all {
		if !NeedsAcceptance(all[i].Insight.Impact.Level) {
			continue
		}
		unique := matching[[2]string{all[i].Informer, all[i].Insight.UID}] == 1
		judged = append(judged, Judged{Reported: all[i], Verdict: verdict(entries, &all[i], unique, scope)})
	}
	return judged
}

// verdict returns the verdict for one insight. unique is set if no other insight has the same informer and
// uid.
func verdict(entries []updatev1beta1.AcceptedInsight, r *Reported, unique bool, scope Scope) AcceptanceVerdict {
	best := VerdictUnaccepted
	for i := range entries {
		if !matches(&entries[i], r) {
			continue
		}
		switch v := verdictOf(&entries[i], r, unique, scope); {
		case v == VerdictRefused:
			return VerdictRefused
		case v == VerdictAccepted, best == VerdictUnaccepted:
			best = v
		}
	}
	return best
}

// matches reports whether an entry refers to an insight.
func matches(entry *updatev1beta1.AcceptedInsight, r *Reported) bool {
	return entry.UpdateInformer == r.Informer && entry.UID == r.Insight.UID && (entry.UUID == "" || entry.UUID == r.Insight.UUID)
}

func verdictOf(entry *updatev1beta1.AcceptedInsight, r *Reported, unique bool, scope Scope) AcceptanceVerdict {
	switch {
	case !entry.Accepted:
		return VerdictRefused
	case entry.UUID == "" && !unique:
		return VerdictAmbiguous
	case entry.AcceptedTime != nil && entry.AcceptedTime.After(scope.Now.Add(text.MaxClockSkew)):
		return VerdictAhead
	case !holds(entry, r, scope):
		return VerdictStale
	case r.Insight.Impact.Level == updatev1beta1.LevelCritical && (entry.UUID == "" || entry.Reason == ""):
		return VerdictIncomplete
	}
	return VerdictAccepted
}

// holds reports whether the acceptance covers what is reported now.
func holds(entry *updatev1beta1.AcceptedInsight, r *Reported, scope Scope) bool {
	if entry.AcceptedTime == nil {
		return !scope.IgnoreUndated
	}
	return !entry.AcceptedTime.Time.Before(r.Insight.FirstObservedTime.Truncate(time.Second))
}

// Count counts the insights that need acceptance and those that are accepted.
func Count(judged []Judged) updatev1beta1.InsightCounts {
	counts := updatev1beta1.InsightCounts{}
	for i := range judged {
		counts.Total++
		if judged[i].Verdict == VerdictAccepted {
			counts.Accepted++
		} else {
			counts.Unaccepted++
		}
	}
	return counts
}

// Unaccepted returns the insights that are not accepted, most severe first.
func Unaccepted(judged []Judged) []Judged {
	rest := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool { return j.Verdict == VerdictAccepted })
	slices.SortStableFunc(rest, func(a, b Judged) int {
		return cmp.Compare(b.Insight.Impact.Level.Rank(), a.Insight.Impact.Level.Rank())
	})
	return rest
}
