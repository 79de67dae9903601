// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ShownCauses is the number of causes on the first screen. Facts not among these causes are watched.
const ShownCauses = 3

// maxWatched limits the number of watched facts.
const maxWatched = 64

// beforeUpdate is the detail of a fact older than the update.
const beforeUpdate = "since before the update"

// coveredFact identifies a fact about an object in a displayed cause.
type coveredFact struct {
	object
	reason string
}

// cover records the facts in the first causes.
func (c *cluster) cover(chains []chain) {
	c.covered = map[coveredFact]bool{}
	for i := range chains[:min(len(chains), ShownCauses)] {
		for _, l := range chains[i].links {
			for _, v := range l.objects {
				c.covered[coveredFact{v.object, l.reason}] = true
				if l.reason == updatev1beta1.ReasonPaused { // the same fact as a condition of the section
					c.covered[coveredFact{v.object, reasonPoolPaused}] = true
				}
			}
		}
	}
}

// watched is a group of facts of one informer with the same reason.
type watched struct {
	group, reason string
	level         updatev1beta1.Level
	since         time.Time
	// before is set if the facts are older than the update.
	before bool
	kind   string
	names  []string
	// summary is the informer's text. details holds everything else.
	summary string
	details []string
}

// watch returns facts worth knowing that are not among the first causes, worst first: warnings and errors of
// all informers, and parts that have not changed for too long in a section that has.
func (c *cluster) watch(shown bool) []updatev1beta1.WatchedFact {
	if !shown {
		c.covered = nil
	}
	var list watchlist
	seen := map[string]bool{}
	for _, s := range c.sections {
		for _, i := range s.insights {
			key := i.informer + "/" + i.UUID
			if i.Impact.Level.Rank() < updatev1beta1.LevelWarning.Rank() || seen[key] || c.isCovered(s, i) {
				continue
			}
			seen[key] = true
			list.add(c.watchedInsight(s, i))
		}
		c.addStalled(&list, s)
	}
	groups := list.groups
	slices.SortStableFunc(groups, func(a, b watched) int {
		return cmp.Or(cmp.Compare(b.level.Rank(), a.level.Rank()), cmp.Compare(a.group, b.group), cmp.Compare(order(b.kind), order(a.kind)),
			a.since.Compare(b.since), cmp.Compare(a.reason, b.reason), cmp.Compare(a.summary, b.summary))
	})
	var facts []updatev1beta1.WatchedFact
	for i := range groups[:min(len(groups), maxWatched)] {
		facts = append(facts, groups[i].publish())
	}
	return facts
}

// isCovered reports whether the first causes already show an insight.
func (c *cluster) isCovered(s *section, i insight) bool {
	group, reason := groupOf(i.informer), bounded(i.Impact.Reason, maxDetail)
	refs := i.Scope.Resources
	if len(refs) == 0 {
		if len(i.Scope.WorkerPool) > 0 && s.pool != nil {
			own, _ := s.object()
			own.group = group
			return c.covered[coveredFact{own, reason}]
		}
		return c.covered[coveredFact{object{group: group, name: bounded(i.UID, maxName), none: true}, reason}]
	}
	return slices.ContainsFunc(refs, func(r updatev1beta1.ResourceReference) bool {
		return c.covered[coveredFact{objectOf(group, r), reason}]
	})
}

func objectOf(group string, r updatev1beta1.ResourceReference) object {
	return object{group: group, kind: bounded(r.Kind, 63), namespace: bounded(r.Namespace, 63), name: bounded(r.Name, maxName)}
}

// watchedInsight converts an insight to a group with a single member.
func (c *cluster) watchedInsight(s *section, i insight) watched {
	w := watched{
		group: groupOf(i.informer), reason: bounded(i.Impact.Reason, maxDetail), level: updatev1beta1.Levels[i.Impact.Level.Rank()],
		summary: clean(i.Impact.Summary),
	}
	if at := i.FirstObservedTime.Time; plausible(at, c.now) {
		w.since = at
	}
	if w.group != "" {
		return w
	}
	refs := slices.Concat(i.Scope.Resources, i.Scope.WorkerPool)
	if len(refs) > 0 {
		at := max(slices.IndexFunc(refs, func(r updatev1beta1.ResourceReference) bool { return r.Kind == kindPod }), 0)
		about := objectOf("", refs[at])
		w.kind, w.names = about.kind, []string{about.fullName()}
	}
	w.before = s.controlPlane && w.kind == kindOperator && s.pending && !w.since.IsZero() && w.since.Before(c.started)
	for _, r := range i.Scope.Resources {
		if r.Kind == kindBudget && w.kind == kindPod {
			w.details = append(w.details, kindBudget+" "+objectOf("", r).fullName())
		}
	}
	if release, is := c.in.Facts.Version.RefusedElsewhere(); is && w.reason == reasonRequestRefused {
		w.details = append(w.details, release.String()+"; withdraw it: oc adm upgrade --clear")
	}
	if i.informer == checks.InformerUpgrades { // it names what must be fixed
		w.details = append(w.details, text.Excerpt(i.Impact.Description))
	}
	if w.reason == reasonVersionFailing {
		w.details = append(w.details, c.failingDetail(s))
	}
	return w
}

// failingDetail returns the reason why the cluster version operator is failing together with the operators
// that it names. If it names none, the message is used instead.
func (c *cluster) failingDetail(s *section) string {
	failing := c.in.Facts.Version.Failing
	var named []string
	c.eachOperatorInsight(s, func(_ insight, name string) {
		if c.in.Facts.Version.WaitsFor(name) && !slices.Contains(named, name) {
			named = append(named, name)
		}
	})
	slices.Sort(named)
	about := text.JoinInPlace(named)
	if len(named) == 0 {
		about = text.Excerpt(failing.Message)
	}
	reason := bounded(failing.Reason, maxDetail)
	if reason == "" || about == "" {
		return clean(reason + about)
	}
	return clean(reason + ": " + about)
}

// addStalled adds parts that have not changed for too long in a section that has.
func (c *cluster) addStalled(list *watchlist, s *section) {
	if s.state == updatev1beta1.StateStuck {
		return
	}
	for _, p := range s.parts {
		if p.unknown || s.controlPlane || c.now.Sub(p.lastChange) < c.limit(s, p) {
			continue
		}
		w := watched{reason: ReasonNodeStalled, level: updatev1beta1.LevelWarning, since: p.lastChange, kind: kindNode, names: []string{bounded(p.name, maxName)}}
		if p.phase == phaseDraining {
			if _, forced := c.forcedAt(p); forced {
				continue
			}
			w.reason = ReasonDrainStalled
		}
		list.add(w)
	}
}

// watchlist holds groups of facts. Informers may report thousands, so groups are found by their key.
type watchlist struct {
	groups []watched
	byKey  map[watchedKey]int
}

type watchedKey struct {
	group, reason, summary string
	level                  updatev1beta1.Level
	before                 bool
}

// add adds a group. If a group with the same informer, reason, and level exists and one clause can describe
// both, it adds the objects to that group. Insights of third parties keep their own words.
func (l *watchlist) add(w watched) {
	key := watchedKey{group: w.group, reason: w.reason, summary: w.summary, level: w.level, before: w.before}
	if w.hasClause() {
		key.summary = ""
	}
	i, found := l.byKey[key]
	if !found {
		if l.byKey == nil {
			l.byKey = map[watchedKey]int{}
		}
		l.byKey[key], l.groups = len(l.groups), append(l.groups, w)
		return
	}
	g := &l.groups[i]
	g.names = append(g.names, w.names...)
	g.details = append(g.details, w.details...)
	g.since = earlier(g.since, w.since)
}

func (w *watched) publish() updatev1beta1.WatchedFact {
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	slices.Sort(w.details)
	fact := updatev1beta1.WatchedFact{
		Level: w.level, Reason: w.reason, Since: timePtr(w.since), UpdateInformer: w.group, Message: bounded(cmp.Or(w.clause(), w.summary, w.reason), 512),
		Detail: bounded(text.JoinInPlace(slices.Compact(w.details)), 256),
	}
	if w.before {
		fact.Detail = beforeUpdate
	}
	return fact
}

// clause describes a group of built-in facts, or returns "" if the reason has no clause.
func (w *watched) clause() string {
	if !w.hasClause() {
		return ""
	}
	r := byReason[w.reason]
	if w.kind == kindNode && strings.HasPrefix(w.reason, kindPod) { // its pods are unknown
		r = drainWaits
	}
	clause := r.clause(len(w.names), text.JoinNames(w.names), len(w.names))
	clause = strings.Replace(clause, "ClusterOperator", "operator", 1)
	if w.before || w.reason == reasonVersionFailing {
		clause = strings.Replace(strings.Replace(clause, " is ", " has been ", 1), " are ", " have been ", 1)
	}
	return clean(clause)
}

// hasClause reports whether the reason has a clause that fits the group.
func (w *watched) hasClause() bool {
	r, found := byReason[w.reason]
	return w.group == "" && found && (len(w.names) > 0 || !strings.Contains(r.one, "{names}"))
}

func watchesError(facts []updatev1beta1.WatchedFact) bool {
	return len(facts) > 0 && facts[0].Level.Rank() >= updatev1beta1.LevelError.Rank()
}
