// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

const (
	// Grace is how long an unreported insight is kept unless it is known to be resolved, and how long the
	// insights of a disabled or deleted informer are kept.
	Grace = time.Minute
	// Memory is how long a resolved insight is remembered. If it returns within that time, it keeps its time
	// of first observation.
	Memory = 24 * time.Hour
	// WaitLimit is how long an informer may answer Wait before this is reported as an insight.
	WaitLimit = hooksv1alpha.MaxStatusWaitSeconds * time.Second
	// RetainLimit is how long an insight is retained after the update.
	RetainLimit = 14 * 24 * time.Hour
	// MaxListed limits the lists of resolved and retained insights.
	MaxListed = 64
	// MaxInsights limits the insights per answer and the insights kept per informer. It does not apply to
	// built-in informers, whose insights are limited per section only.
	MaxInsights = hooksv1alpha.MaxInsights

	// churnWindow and maxNew limit the rate of new insights per informer. An informer that exceeds the rate
	// is assumed to use unstable identifiers.
	churnWindow = 10 * time.Minute
	maxNew      = 20
	// maxRemembered limits the resolved insights that are remembered per informer.
	maxRemembered = 1024
)

// Store holds the insights of all informers between answers. Copies share memory. The zero Store is empty and
// read-only; use NewStore to create one. It is not safe for concurrent use.
type Store struct{ m *memory }

type memory struct {
	informers map[string]*informer
	retained  map[string]updatev1beta1.RetainedInsight // by UUID
	since     map[string]time.Time                     // see KnownSince
}

// informer holds the state of one informer.
type informer struct {
	name     string
	entries  map[string]*entry   // by UUID
	resolved map[string]resolved // by UUID

	last Answer // insights removed
	// cleaned caches the cleaned insights of the latest answer that had insights, because an answer is
	// applied in each pass. given holds the same insights as received.
	cleaned   reported
	cleanedAt time.Time
	given     []updatev1beta1.Insight
	// waitingSince is when the current series of Wait answers began. goneSince is when the informer was
	// disabled or deleted.
	waitingSince, goneSince time.Time
	// baseline is set after the first Success. Insights in the first Success do not count as new.
	baseline bool
	// admitted holds the times of the latest new insights. rejected counts the insights in the latest answer
	// that exceed the limit.
	admitted []time.Time
	rejected rejection
	// mutatedAt is the time when the scope of an insight last changed.
	mutatedAt time.Time
	// odd counts the insights of the latest answer that were changed or dropped because they violate the
	// protocol.
	odd int
}

// rejection counts hidden insights.
type rejection struct {
	count int
	level updatev1beta1.Level
}

// entry is an insight that applies or may still apply.
type entry struct {
	insight updatev1beta1.Insight
	// missingSince is when the current series of answers without the insight began, or zero if the latest
	// answer contains the insight.
	missingSince time.Time
}

// resolved is a formerly reported insight. A zero time marks one of the controller's own insights
// that was published before a restart. The first Settle starts its memory period.
type resolved struct {
	updatev1beta1.ResolvedInsight
	listed bool // published
}

// NewStore returns an empty Store.
func NewStore() Store {
	return Store{&memory{informers: map[string]*informer{}, retained: map[string]updatev1beta1.RetainedInsight{}}}
}

// IsZero reports whether the Store is the zero Store.
func (s Store) IsZero() bool { return s.m == nil }

// KnownSince returns since when each call has named a UUID. The time is zero if the Store has such an insight, or
// if the first call named it: it may have been true for long, and a command looks only once.
func (s Store) KnownSince(uuids []string, now time.Time) map[string]time.Time {
	known := make(map[string]time.Time, len(uuids))
	for _, uuid := range uuids {
		since, found := s.m.since[uuid]
		if !found && s.m.since != nil && !s.applies(uuid) {
			since = now
		}
		known[uuid] = notAhead(since, now)
	}
	s.m.since = known
	return known
}

// applies reports whether an insight applies or may still apply.
func (s Store) applies(uuid string) bool {
	for _, i := range s.m.informers {
		if i.entries[uuid] != nil {
			return true
		}
	}
	return false
}

func (s Store) informer(name string) *informer {
	i := s.m.informers[name]
	if i == nil {
		i = &informer{name: name, entries: map[string]*entry{}, resolved: map[string]resolved{}}
		s.m.informers[name] = i
	}
	return i
}

// Restore adds the insights of a published status that the Store does not know yet. They are stale since the
// status was last confirmed, until their informers answer. Restore resolves nothing and may be called
// repeatedly.
func (s Store) Restore(status updatev1beta1.UpdateStatusStatus) {
	for _, r := range status.RecentlyResolved {
		i := s.informer(r.UpdateInformer)
		if _, known := i.resolved[r.UUID]; !known && i.entries[r.UUID] == nil {
			i.resolved[r.UUID] = resolved{r, true}
		}
	}
	for _, r := range status.AfterUpdate {
		if _, known := s.m.retained[r.Insight.UUID]; !known && !s.knows(r.UpdateInformer, r.Insight.UUID) {
			s.m.retained[r.Insight.UUID] = *r.DeepCopy()
			s.restore(r.UpdateInformer, r.Insight, status.ObservedTime)
		}
	}
	for _, section := range status.Sections() {
		for _, of := range section.UpdateInformers {
			for i := range of.Insights {
				s.restore(of.Name, of.Insights[i], status.ObservedTime)
			}
		}
	}
}

// knows reports whether the Store holds an insight, either as applying or as resolved.
func (s Store) knows(name, uuid string) bool {
	i := s.m.informers[name]
	if i == nil {
		return false
	}
	_, known := i.resolved[uuid]
	return known || i.entries[uuid] != nil
}

func (s Store) restore(name string, published updatev1beta1.Insight, observed *metav1.Time) {
	if s.knows(name, published.UUID) {
		return
	}
	if name == updatev1beta1.StatusControllerInformer { // the controller recomputes its own insights
		s.informer(name).resolved[published.UUID] = resolvedFrom(name, published, "", time.Time{}, false)
		return
	}
	restored := *published.DeepCopy()
	if restored.StaleSince == nil && observed != nil {
		restored.StaleSince = observed.DeepCopy()
	}
	s.informer(name).entries[published.UUID] = &entry{insight: restored}
}

// Apply applies the latest answer of an informer. An answer older than the last applied answer changes
// nothing, so the order of answers does not matter.
func (s Store) Apply(answer Answer, now time.Time) {
	i := s.informer(answer.Informer)
	if answer.At.After(now.Add(skew)) {
		answer.At = now // the clock was set back
	}
	if answer.At.Before(i.last.At) && !i.last.At.After(now.Add(skew)) {
		return
	}
	i.note(answer)
	switch answer.Result {
	case Success:
		i.succeed(answer, now)
	case Failure:
		reported := i.clean(answer)
		i.admit(reported, true, answer.At, now)
		i.outdate(answer.At, func(uuid string) bool { return reported.has(uuid) })
	case NotQueried:
		i.rejected = rejection{}
	case Wait, Unreachable, Invalid, Disabled, Deleted:
		i.outdate(answer.At, func(string) bool { return false })
	}
}

// note records the result of an answer.
func (i *informer) note(answer Answer) {
	switch {
	case answer.Result != Wait:
		i.waitingSince = time.Time{}
	case i.waitingSince.IsZero():
		i.waitingSince = answer.At
	}
	switch {
	case answer.Result == NotQueried: // the insights of a disabled informer are not confirmed
	case answer.Result != Disabled && answer.Result != Deleted:
		i.goneSince = time.Time{}
	case i.goneSince.IsZero():
		i.goneSince = answer.At
	}
	i.last = answer
	i.last.Insights = nil
}

// outdate marks the insights that an answer does not confirm as stale. It clears missingSince because their
// absence is not confirmed either.
func (i *informer) outdate(at time.Time, confirmed func(uuid string) bool) {
	for uuid, e := range i.entries {
		if !confirmed(uuid) {
			e.outdate(at)
		}
	}
}

func (e *entry) outdate(at time.Time) {
	e.missingSince = time.Time{}
	if e.insight.StaleSince == nil {
		e.insight.StaleSince = new(metav1.NewTime(at.UTC().Truncate(time.Second)))
	}
}

// reported holds the cleaned insights of an answer without duplicates, most severe first.
type reported struct {
	insights []updatev1beta1.Insight
	uuids    map[string]bool
	// excess lists the UUIDs of insights over the limit. They do not count as resolved.
	excess []string
}

func (r reported) has(uuid string) bool { return r.uuids[uuid] }

func (i *informer) clean(answer Answer) reported {
	if n := len(answer.Insights); n > 0 && n == len(i.given) && &answer.Insights[0] == &i.given[0] && i.cleanedAt.Equal(answer.At) {
		return i.cleaned
	}
	i.odd = 0
	byUUID := map[string]updatev1beta1.Insight{}
	trusted := IsBuiltIn(i.name)
	for n := range answer.Insights {
		made := answer.Insights[n]
		if !trusted {
			if made.UID == "" {
				i.odd++
			}
			made = Clean(i.name, made, answer.At)
		}
		if other, twice := byUUID[made.UUID]; twice {
			i.odd++
			if compare(other, made) <= 0 {
				continue
			}
		}
		byUUID[made.UUID] = made
	}
	r := reported{insights: slices.SortedFunc(maps.Values(byUUID), compare), uuids: make(map[string]bool, len(byUUID))}
	if excess := len(r.insights) - MaxInsights; excess > 0 && !trusted {
		i.odd += excess
		clear(r.insights[MaxInsights:])
		r.insights = slices.Clip(r.insights[:MaxInsights])
	}
	for n := range r.insights {
		r.uuids[r.insights[n].UUID] = true
		delete(byUUID, r.insights[n].UUID)
	}
	for uuid := range byUUID {
		r.excess = append(r.excess, uuid)
	}
	i.cleaned, i.cleanedAt, i.given = r, answer.At, answer.Insights
	return r
}

// succeed applies an answer that lists every insight of the informer.
func (i *informer) succeed(answer Answer, now time.Time) {
	var acquired time.Time // newest acquisition time in the answer
	for n := range answer.Insights {
		if at := answer.Insights[n].AcquisitionTime.Time; isPlausible(at, answer.At) && at.After(acquired) {
			acquired = at
		}
	}
	reported := i.clean(answer)
	i.noteMutations(reported, answer.At)
	for _, uuid := range reported.excess {
		if e := i.entries[uuid]; e != nil {
			i.hide(e, now)
		}
	}
	for uuid, e := range i.entries {
		if !reported.has(uuid) {
			i.miss(e, answer, acquired, now)
		}
	}
	i.admit(reported, i.baseline, answer.At, now)
	i.baseline = true
}

// miss handles an insight that a Success does not list.
func (i *informer) miss(e *entry, answer Answer, acquired, now time.Time) {
	last := e.insight.AcquisitionTime.Time
	switch {
	case involves(e.insight, answer.Unread), hasUID(e.insight, answer.UnreadUIDs):
		e.outdate(answer.At)
	case answer.Live, !acquired.IsZero() && acquired.After(last) && !last.After(now.Add(skew)):
		i.resolve(e, updatev1beta1.ResolutionResolved, now)
	case !acquired.IsZero() && acquired.Before(last) && !last.After(now.Add(skew)):
		e.outdate(answer.At)
	case e.missingSince.IsZero():
		e.missingSince = answer.At
	}
}

// involves reports whether an insight refers to an object of one of the kinds.
func involves(of updatev1beta1.Insight, kinds []string) bool {
	return len(kinds) > 0 && slices.ContainsFunc(slices.Concat(of.Scope.Resources, of.Scope.WorkerPool), func(ref updatev1beta1.ResourceReference) bool {
		return slices.Contains(kinds, ref.Kind)
	})
}

// hasUID reports whether the uid of an insight starts with one of the prefixes.
func hasUID(of updatev1beta1.Insight, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(of.UID, prefix) })
}

// noteMutations records that the scope of a known uid has changed.
func (i *informer) noteMutations(reported reported, at time.Time) {
	uids := map[string]bool{}
	for uuid, e := range i.entries {
		if !reported.has(uuid) {
			uids[e.insight.UID] = true
		}
	}
	for n := range reported.insights {
		if r := &reported.insights[n]; i.entries[r.UUID] == nil && uids[r.UID] {
			i.mutatedAt = at
		}
	}
}

// admit adds or updates insights. If they exceed MaxInsights, or the rate of new insights if limited is set,
// it rejects the least severe. Neither limit applies to built-in informers.
func (i *informer) admit(reported reported, limited bool, at, now time.Time) {
	i.admitted = slices.DeleteFunc(i.admitted, func(t time.Time) bool { return now.Sub(t) >= churnWindow || t.After(now.Add(skew)) })
	i.rejected = rejection{}
	trusted := IsBuiltIn(i.name)
	limited = limited && !trusted
	for _, r := range reported.insights {
		e, before := i.entries[r.UUID], i.resolved[r.UUID]
		switch {
		case e != nil:
			e.update(r, now)
			continue
		case !trusted && len(i.entries) >= MaxInsights, limited && before.UUID == "" && len(i.admitted) >= maxNew:
			i.rejected.add(r.Impact.Level)
			continue
		case limited && before.UUID == "":
			i.admitted = append(i.admitted, now)
		}
		since := metav1.NewTime(at.UTC().Truncate(time.Second))
		if before.UUID != "" && now.Sub(before.ResolvedTime.Time) < Memory {
			since, r.Flaps = before.FirstObservedTime, before.Flaps
			if before.Reason == updatev1beta1.ResolutionResolved {
				r.Flaps++
			}
		}
		if r.FirstObservedTime.IsZero() { // built-in informers may know when the problem began
			r.FirstObservedTime = since
		}
		delete(i.resolved, r.UUID)
		i.entries[r.UUID] = &entry{insight: r}
	}
}

// update applies a confirmed insight. Data acquired earlier does not replace newer data.
func (e *entry) update(r updatev1beta1.Insight, now time.Time) {
	last := e.insight
	e.missingSince = time.Time{}
	if r.AcquisitionTime.Time.Before(last.AcquisitionTime.Time) && !last.AcquisitionTime.After(now.Add(skew)) {
		e.insight.StaleSince = nil
		return
	}
	if r.Impact.Level != updatev1beta1.LevelStatus || r.FirstObservedTime.IsZero() {
		r.FirstObservedTime = last.FirstObservedTime
	}
	r.Flaps = last.Flaps
	e.insight = r
}

func (i *informer) resolve(e *entry, reason updatev1beta1.ResolutionReason, now time.Time) {
	of := e.insight
	delete(i.entries, of.UUID)
	if of.Impact.Level == updatev1beta1.LevelStatus {
		return // an expected step; the next step like it is a different insight
	}
	i.resolved[of.UUID] = resolvedFrom(i.name, of, reason, now.UTC().Truncate(time.Second), true)
}

// hide ends an insight without marking it as resolved.
func (i *informer) hide(e *entry, now time.Time) {
	i.resolve(e, "", now)
	if r, remembered := i.resolved[e.insight.UUID]; remembered {
		i.resolved[e.insight.UUID] = resolved{r.ResolvedInsight, false}
	}
}

func resolvedFrom(informer string, of updatev1beta1.Insight, reason updatev1beta1.ResolutionReason, at time.Time, listed bool) resolved {
	return resolved{updatev1beta1.ResolvedInsight{
		UpdateInformer: informer, UUID: of.UUID, Level: of.Impact.Level, Summary: of.Impact.Summary, Reason: reason,
		FirstObservedTime: of.FirstObservedTime, ResolvedTime: metav1.NewTime(at), Flaps: of.Flaps,
	}, listed}
}

func (r *rejection) add(level updatev1beta1.Level) {
	if r.count == 0 || level.Rank() > r.level.Rank() {
		r.level = level
	}
	r.count++
}

// IsBuiltIn reports whether an informer is part of the controller.
func IsBuiltIn(informer string) bool {
	return informer == updatev1beta1.StatusControllerInformer || strings.HasPrefix(informer, updatev1beta1.BuiltInPrefix)
}
