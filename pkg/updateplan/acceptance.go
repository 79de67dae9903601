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

// Reported is an insight of a plan with its informer.
type Reported struct {
	Informer string
	Insight  updatev1beta1.Insight
}

// Insights returns the insights of a plan, each UUID once, in the order of the status.
func Insights(status *updatev1beta1.UpdatePlanStatus) []Reported {
	var informers []updatev1beta1.InformerInsights
	for _, section := range status.Sections() {
		informers = append(informers, section.UpdateInformers...)
	}
	return Flatten(informers)
}

// Flatten returns the insights of informers, each UUID once: an insight may concern several pools.
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

// identity identifies an insight among the insights of all informers. UUIDs are hashes that include the informer.
func identity(informer string, of *updatev1beta1.Insight) string {
	return cmp.Or(of.UUID, informer+"\n"+of.UID)
}

// NeedsAcceptance reports whether an update may be started only once insights of that level are
// accepted. An unknown level needs acceptance.
func NeedsAcceptance(level updatev1beta1.Level) bool {
	return level != updatev1beta1.LevelStatus && level != updatev1beta1.LevelInfo
}

// Verdict is whether an insight that needs acceptance is accepted.
type Verdict string

// The verdicts.
const (
	// VerdictAccepted is an insight that a person has accepted.
	VerdictAccepted Verdict = "Accepted"
	// VerdictUnaccepted is an insight about which no person has decided.
	VerdictUnaccepted Verdict = "Unaccepted"
	// VerdictRefused is an insight that a person has explicitly not accepted.
	VerdictRefused Verdict = "Refused"
	// VerdictAmbiguous is an insight whose acceptance names no uuid and matches several insights.
	VerdictAmbiguous Verdict = "Ambiguous"
	// VerdictStale is an insight that was accepted before it was observed, or for another release.
	VerdictStale Verdict = "Stale"
	// VerdictIncomplete is a critical insight whose acceptance lacks its uuid or a reason.
	VerdictIncomplete Verdict = "Incomplete"
)

// Judged is an insight that needs acceptance, with the verdict.
type Judged struct {
	Reported

	Verdict Verdict
}

// Scope bounds which acceptances count.
type Scope struct {
	// Now is the time.
	Now time.Time
	// IgnoreUndated drops the acceptances that name no time: they were given before the release of the
	// cluster changed.
	IgnoreUndated bool
}

// Judge returns the insights that need acceptance with their verdicts, in their order.
//
// An acceptance names an informer, a uid, and possibly a uuid. Without a uuid it counts only if a
// single insight matches. With a time it counts for what was observed then: an insight that was
// observed first later needs another one. Without a time it counts until the release of the cluster
// changes. A critical insight needs a uuid and a reason. An entry that
// is not accepted always prevails.
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

// verdict returns the verdict on one insight; unique reports that no other one has its informer and
// uid.
func verdict(entries []updatev1beta1.AcceptedInsight, r *Reported, unique bool, scope Scope) Verdict {
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

// matches reports whether an entry is about an insight.
func matches(entry *updatev1beta1.AcceptedInsight, r *Reported) bool {
	return entry.UpdateInformer == r.Informer && entry.UID == r.Insight.UID && (entry.UUID == "" || entry.UUID == r.Insight.UUID)
}

func verdictOf(entry *updatev1beta1.AcceptedInsight, r *Reported, unique bool, scope Scope) Verdict {
	switch {
	case !entry.Accepted:
		return VerdictRefused
	case entry.UUID == "" && !unique:
		return VerdictAmbiguous
	case !holds(entry, r, scope):
		return VerdictStale
	case r.Insight.Impact.Level == updatev1beta1.LevelCritical && (entry.UUID == "" || entry.Reason == ""):
		return VerdictIncomplete
	}
	return VerdictAccepted
}

// holds reports whether an acceptance was given for what is reported now. A time in the future
// accepts nothing: it would accept what is not known yet.
func holds(entry *updatev1beta1.AcceptedInsight, r *Reported, scope Scope) bool {
	if entry.AcceptedTime == nil {
		return !scope.IgnoreUndated
	}
	at := entry.AcceptedTime.Time
	return !at.After(scope.Now.Add(text.MaxClockSkew)) && !at.Before(r.Insight.FirstObservedTime.Truncate(time.Second))
}

// Count returns how many insights need acceptance, and how many are accepted.
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

// Unaccepted returns the insights that are not accepted, the most severe first.
func Unaccepted(judged []Judged) []Judged {
	rest := slices.DeleteFunc(slices.Clone(judged), func(j Judged) bool { return j.Verdict == VerdictAccepted })
	slices.SortStableFunc(rest, func(a, b Judged) int {
		return cmp.Compare(b.Insight.Impact.Level.Rank(), a.Insight.Impact.Level.Rank())
	})
	return rest
}
