// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// KeepOnly treats informers that are not in names as deleted, except built-in informers. The caller must name
// every existing UpdateInformer.
func (s Store) KeepOnly(names []string, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(s.m.informers)) {
		if i := s.m.informers[name]; !IsBuiltIn(name) && i.last.Result != Deleted && !slices.Contains(names, name) {
			s.Apply(Answer{Informer: name, Result: Deleted, At: now}, now)
		}
	}
}

// Settle applies the effects of elapsed time. It drops insights whose grace period is over, because they are
// no longer reported or their informer is gone, and forgets old resolved insights. It then reports problems
// of the informers themselves as insights of the informer update-status-controller.
func (s Store) Settle(now time.Time) {
	var own []updatev1beta1.Insight
	for _, name := range slices.Sorted(maps.Keys(s.m.informers)) {
		i := s.m.informers[name]
		i.settle(now)
		if !IsBuiltIn(name) {
			own = append(own, i.report(now)...)
		}
		if i.last.Result == Deleted && len(i.entries) == 0 && len(i.resolved) == 0 {
			delete(s.m.informers, name)
		}
	}
	s.Apply(Answer{Informer: updatev1beta1.StatusControllerInformer, Result: Success, Insights: own, At: now, Live: true}, now)
}

func (i *informer) settle(now time.Time) {
	i.goneSince, i.waitingSince = notAhead(i.goneSince, now), notAhead(i.waitingSince, now)
	gone := !i.goneSince.IsZero() && now.Sub(i.goneSince) >= Grace
	reason := updatev1beta1.ResolutionInformerDisabled
	if i.last.Result == Deleted {
		reason = updatev1beta1.ResolutionInformerDeleted
	}
	for _, e := range i.entries {
		e.missingSince = notAhead(e.missingSince, now)
		switch {
		case gone:
			i.resolve(e, reason, now)
		case !e.missingSince.IsZero() && now.Sub(e.missingSince) >= Grace:
			i.resolve(e, updatev1beta1.ResolutionResolved, now)
		}
	}
	i.forget(now)
}

// notAhead returns a recorded time, or now if the clock has been set back since.
func notAhead(recorded, now time.Time) time.Time {
	if recorded.After(now.Add(skew)) {
		return now
	}
	return recorded
}

// forget removes expired resolved insights and, above the limit, the oldest.
func (i *informer) forget(now time.Time) {
	for uuid, r := range i.resolved {
		if r.ResolvedTime.IsZero() {
			r.ResolvedTime = metav1.NewTime(now.UTC().Truncate(time.Second))
			i.resolved[uuid] = r
		}
	}
	maps.DeleteFunc(i.resolved, func(_ string, r resolved) bool { return now.Sub(r.ResolvedTime.Time) >= Memory })
	if len(i.resolved) <= maxRemembered {
		return
	}
	oldest := slices.SortedFunc(maps.Values(i.resolved), func(a, b resolved) int { return -compareResolved(a.ResolvedInsight, b.ResolvedInsight) })
	for _, r := range oldest[:len(oldest)-maxRemembered] {
		delete(i.resolved, r.UUID)
	}
}

// compareResolved orders resolved insights by time, latest first, and then by severity.
func compareResolved(a, b updatev1beta1.ResolvedInsight) int {
	return cmp.Or(b.ResolvedTime.Compare(a.ResolvedTime.Time), b.Level.Rank()-a.Level.Rank(), strings.Compare(a.UUID, b.UUID))
}

// compare orders insights by severity, most severe first, and then by identity.
func compare(a, b updatev1beta1.Insight) int {
	return cmp.Or(
		b.Impact.Level.Rank()-a.Impact.Level.Rank(), strings.Compare(a.UID, b.UID), strings.Compare(a.UUID, b.UUID),
		strings.Compare(a.Impact.Summary, b.Impact.Summary), strings.Compare(a.Impact.Description, b.Impact.Description),
		a.AcquisitionTime.Compare(b.AcquisitionTime.Time),
	)
}

// Insights returns the insights that apply or may still apply, sorted and grouped by informer.
func (s Store) Insights() []updatev1beta1.InformerInsights {
	var all []updatev1beta1.InformerInsights
	for _, name := range slices.Sorted(maps.Keys(s.m.informers)) {
		i := s.m.informers[name]
		if len(i.entries) == 0 {
			continue
		}
		of := updatev1beta1.InformerInsights{Name: name, Insights: make([]updatev1beta1.Insight, 0, len(i.entries))}
		for _, e := range i.entries {
			of.Insights = append(of.Insights, e.insight)
		}
		slices.SortFunc(of.Insights, compare)
		all = append(all, of)
	}
	return all
}

// RecentlyResolved returns up to 64 insights that were resolved within the last day, latest first.
func (s Store) RecentlyResolved() []updatev1beta1.ResolvedInsight {
	var all []updatev1beta1.ResolvedInsight
	for _, i := range s.m.informers {
		for _, r := range i.resolved {
			if r.listed {
				all = append(all, r.ResolvedInsight)
			}
		}
	}
	slices.SortFunc(all, compareResolved)
	return slices.Clip(all[:min(len(all), MaxListed)])
}

// BeginUpdate marks the start of an update. Insights retained from an earlier update beyond RetainLimit are
// shown again.
func (s Store) BeginUpdate(now time.Time) {
	maps.DeleteFunc(s.m.retained, func(_ string, r updatev1beta1.RetainedInsight) bool { return isExpired(r, now) })
}

func isExpired(r updatev1beta1.RetainedInsight, now time.Time) bool {
	return now.Sub(r.RetainedSince.Time) >= RetainLimit
}

// EndUpdate ends the insights of an update once no update is in progress, because informers are not queried
// then. It retains unacknowledged insights that need attention after the update, up to RetainLimit. After
// that they are hidden for as long as the latest answer contains them. Built-in informers decide for
// themselves what applies, except for those that report only during an update.
func (s Store) EndUpdate(acknowledged []string, now time.Time) {
	maps.DeleteFunc(s.m.retained, func(uuid string, r updatev1beta1.RetainedInsight) bool {
		i := s.m.informers[r.UpdateInformer]
		return i == nil || i.entries[uuid] == nil
	})
	for name, i := range s.m.informers {
		endsWithUpdate := func(builtIn checks.Informer) bool { return builtIn.Name == name && builtIn.OnlyDuringUpdate }
		if !IsBuiltIn(name) || slices.ContainsFunc(checks.Informers(), endsWithUpdate) {
			s.endUpdate(i, acknowledged, now)
		}
	}
}

func (s Store) endUpdate(i *informer, acknowledged []string, now time.Time) {
	for uuid, e := range i.entries {
		r, known := s.m.retained[uuid]
		expired := known && isExpired(r, now)
		if needsAttention(e.insight) && !slices.Contains(acknowledged, uuid) && !expired {
			if !known {
				s.m.retained[uuid] = updatev1beta1.RetainedInsight{UpdateInformer: i.name, RetainedSince: metav1.NewTime(now.UTC().Truncate(time.Second))}
			}
			continue
		}
		i.hide(e, now)
	}
	// Problems of the answers end, too: no other answer would end them before the next update.
	i.last.Degraded, i.odd, i.rejected = "", 0, rejection{}
}

// needsAttention reports whether an insight needs attention after the update.
func needsAttention(of updatev1beta1.Insight) bool {
	return of.Remediation.Resolved != nil && !*of.Remediation.Resolved
}

// Retained returns up to 64 insights that EndUpdate has retained, most severe first.
func (s Store) Retained() []updatev1beta1.RetainedInsight {
	var all []updatev1beta1.RetainedInsight
	for uuid, r := range s.m.retained {
		if i := s.m.informers[r.UpdateInformer]; i != nil && i.entries[uuid] != nil {
			r.Insight = i.entries[uuid].insight
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b updatev1beta1.RetainedInsight) int {
		return cmp.Or(compare(a.Insight, b.Insight), strings.Compare(a.UpdateInformer, b.UpdateInformer))
	})
	return slices.Clip(all[:min(len(all), MaxListed)])
}
