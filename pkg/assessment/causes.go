// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits on the causes.
const (
	maxCauses = 256
	maxLinks  = 64
	// maxObjectBytes limits the total size of the object names in all causes. The whole status has a budget
	// of 900 KiB.
	maxObjectBytes = 128 << 10
	// maxVisits limits the total number of objects in all chains. Above the limit, a chain leaves out objects
	// that other chains already contain.
	maxVisits = 1 << 15
)

// object identifies a vertex of the cause graph: an object as reported by one group of informers. The
// built-in informers form one group. Every other informer is its own group, because its reports do not
// explain the reports of others.
type object struct {
	group                 string
	kind, namespace, name string
	// none marks a stand-in for an insight that names no object. The name is then the uid of the insight.
	none bool
}

func (o object) compare(other object) int {
	return cmp.Or(cmp.Compare(o.group, other.group), cmp.Compare(order(o.kind), order(other.kind)), cmp.Compare(o.kind, other.kind),
		cmp.Compare(o.namespace, other.namespace), cmp.Compare(o.name, other.name))
}

func (o object) fullName() string {
	if o.namespace == "" {
		return o.name
	}
	return o.namespace + "/" + o.name
}

// order returns the position of a kind in a chain of causes. An unknown kind may block a node.
func order(kind string) int {
	switch kind {
	case kindBudget:
		return 0
	case kindNode:
		return 2
	case kindPool:
		return 3
	case kindOperator:
		return 4
	case kindVersion:
		return 5
	}
	return 1
}

// fact explains why an object is in the graph: an insight about it, or a finding of the assessment itself.
type fact struct {
	reason, informer, summary string
	// detail is what the object itself reports, as one line of limited length. It may be empty.
	detail string
	level  updatev1beta1.Level
	since  time.Time
}

// vertex is an object with its problems.
type vertex struct {
	object
	apiVersion string
	facts      []fact
	effects    map[object]bool
	caused     bool
}

// graph holds the problems in one section and their causal relations.
type graph struct {
	section  *section
	vertices map[object]*vertex
	// covered is the set of objects already in a chain. visits counts the objects in all chains of the
	// cluster.
	covered map[object]bool
	visits  *int
}

// causes returns the causal chains of all sections whose state needs an explanation.
func (c *cluster) causes() []updatev1beta1.Cause {
	var all []chain
	visits := 0
	for _, s := range c.sections {
		if s.explained() && (!s.required || !c.explainsNodes(c.controlPlane())) {
			g := c.graphOf(s)
			g.visits = &visits
			all = append(all, g.chains()...)
		}
	}
	slices.SortStableFunc(all, compareChains)
	c.cover(all)
	if len(all) > maxCauses {
		all = append(all[:maxCauses-1], mergeRest(all[maxCauses-1:]))
	}
	budget := maxObjectBytes
	causes := make([]updatev1beta1.Cause, 0, len(all))
	for i := range all {
		causes = append(causes, c.causeOf(&all[i], &budget))
	}
	if len(causes) == 0 {
		return nil
	}
	return causes
}

// explainsNodes reports whether the causes of a section include those of the nodes updated by machine-config,
// because the control plane waits for that operator.
func (c *cluster) explainsNodes(s *section) bool {
	if !s.controlPlane || s.state != updatev1beta1.StateStuck {
		return false
	}
	return s.stalled && c.onlyNodesLeft(s) || slices.ContainsFunc(s.stuck, func(p part) bool { return p.name == clusterstate.MachineConfigOperator })
}

// onlyNodesLeft reports whether machine-config is the only operator that still needs the update.
func (c *cluster) onlyNodesLeft(s *section) bool {
	return s.total-s.updated == 1 && !c.isUpdated(clusterstate.MachineConfigOperator)
}

// explained reports whether the section needs an explanation because it is stuck or its pause lasts until a
// user ends it.
func (s *section) explained() bool {
	return s.state == updatev1beta1.StateStuck ||
		s.state == updatev1beta1.StateWaiting && s.active.Status == metav1.ConditionFalse && s.active.Reason != updatev1beta1.ReasonAwaitingWindow
}

// graphOf returns the graph of a section: insights of at least level warning, the findings of the assessment,
// and everything that waits for them. The only cause for a paused section is its pause.
func (c *cluster) graphOf(s *section) *graph {
	g := &graph{section: s, vertices: map[object]*vertex{}, covered: map[object]bool{}}
	if s.state == updatev1beta1.StateWaiting {
		c.addFindings(g)
		return g
	}
	g.addInsights(s)
	c.addFindings(g)
	c.addEffects(g)
	if c.explainsNodes(s) {
		for _, nodes := range c.sections {
			if nodes.required && nodes.pending {
				c.addNodes(g, nodes)
			}
		}
	}
	return g
}

// addNodes adds the problems of the nodes that machine-config updates.
func (c *cluster) addNodes(g *graph, nodes *section) {
	s := g.section
	g.section = nodes
	g.addInsights(nodes)
	c.addFindings(g)
	c.addEffects(g)
	g.section = s
}

// addInsights adds the section's insights of at least level warning.
func (g *graph) addInsights(s *section) {
	uuids := map[string][]*vertex{} // by informer and UUID
	for _, i := range s.insights {
		if i.Impact.Level.Rank() >= updatev1beta1.LevelWarning.Rank() {
			uuids[i.informer+"/"+i.UUID] = g.addInsight(i)
		}
	}
	for _, i := range s.insights {
		for _, cause := range i.CausedBy {
			from, to := uuids[i.informer+"/"+cause], uuids[i.informer+"/"+i.UUID]
			if len(from) > 0 && len(to) > 0 {
				g.connect(from[len(from)-1], to[0])
			}
		}
	}
}

// groupOf returns the group of an informer.
func groupOf(informer string) string {
	if builtIn(informer) {
		return ""
	}
	return bounded(informer, maxName)
}

// addInsight adds the objects of an insight. They explain each other in the order of their kinds: a
// PodDisruptionBudget blocks a pod, and a pod blocks a node.
func (g *graph) addInsight(i insight) []*vertex {
	f := fact{
		reason: bounded(i.Impact.Reason, maxDetail), informer: bounded(i.informer, maxName), summary: clean(i.Impact.Summary),
		detail: text.Excerpt(i.Impact.Description), level: updatev1beta1.Levels[i.Impact.Level.Rank()], since: i.FirstObservedTime.Time,
	}
	group := groupOf(i.informer)
	var added []*vertex
	for _, r := range i.Scope.Resources {
		v := g.add(objectOf(group, r), bounded(r.APIVersion, 317))
		v.add(f)
		added = append(added, v)
	}
	if len(added) == 0 && len(i.Scope.WorkerPool) > 0 && g.section.pool != nil { // the insight is about the pool itself
		own, apiVersion := g.section.object()
		own.group = group
		v := g.add(own, apiVersion)
		v.add(f)
		return []*vertex{v}
	}
	if len(added) == 0 { // the insight names no object: its uid stands for it
		v := g.add(object{group: group, name: bounded(i.UID, maxName), none: true}, "")
		v.add(f)
		return []*vertex{v}
	}
	slices.SortStableFunc(added, func(a, b *vertex) int { return cmp.Compare(order(a.kind), order(b.kind)) })
	for _, v := range added {
		next := slices.IndexFunc(added, func(other *vertex) bool { return order(other.kind) > order(v.kind) })
		for ; next >= 0 && next < len(added); next++ {
			g.connect(v, added[next])
			if next+1 < len(added) && order(added[next+1].kind) > order(added[next].kind) {
				break
			}
		}
	}
	return added
}

func (g *graph) add(o object, apiVersion string) *vertex {
	v, found := g.vertices[o]
	if !found {
		v = &vertex{object: o, effects: map[object]bool{}}
		g.vertices[o] = v
	}
	v.apiVersion = cmp.Or(v.apiVersion, apiVersion)
	return v
}

// add records a fact about the object. Facts with the same reason are merged into one with the highest level
// and the earliest time.
func (v *vertex) add(f fact) {
	for i := range v.facts {
		known := &v.facts[i]
		if known.reason != f.reason {
			continue
		}
		if f.level.Rank() > known.level.Rank() {
			known.level = f.level
		}
		known.since = earlier(known.since, f.since)
		known.summary, known.detail = min(known.summary, f.summary), min(known.detail, f.detail)
		return
	}
	v.facts = append(v.facts, f)
}

func (g *graph) connect(from, to *vertex) {
	if from == to || from.group != to.group {
		return
	}
	from.effects[to.object], to.caused = true, true
}

// addFindings adds the findings that only the assessment makes: parts and sections that do not change, and
// sections that wait.
func (c *cluster) addFindings(g *graph) {
	s := g.section
	for _, p := range s.stuck {
		kind, reason := kindNode, ReasonNodeStalled
		switch {
		case s.controlPlane:
			kind, reason = kindOperator, ReasonOperatorStalled
		case p.phase == phaseDraining:
			reason = ReasonDrainStalled
		}
		g.add(object{kind: kind, name: p.name}, "").add(fact{reason: reason, level: updatev1beta1.LevelError, since: p.lastChange})
	}
	own, apiVersion := s.object()
	switch {
	case s.stalled:
		reason := ReasonPoolStalled
		if s.controlPlane {
			reason = ReasonControlPlaneStalled
		}
		g.add(own, apiVersion).add(fact{reason: reason, level: updatev1beta1.LevelError, since: s.lastChange})
	case s.state == updatev1beta1.StateWaiting && s.active.Status == metav1.ConditionFalse:
		g.add(own, apiVersion).add(fact{
			reason: bounded(s.active.Reason, maxDetail), level: updatev1beta1.LevelInfo, summary: clean(s.active.Message),
			since: s.active.LastTransitionTime.Time,
		})
	}
}

// object returns the object that the section represents.
func (s *section) object() (object, string) {
	if s.pool == nil {
		return object{kind: kindVersion, name: clusterstate.VersionKey.Name}, "config.openshift.io/v1"
	}
	return object{kind: bounded(s.pool.Kind, 63), namespace: bounded(s.pool.Namespace, 63), name: s.name}, bounded(s.pool.APIVersion, 317)
}

// addEffects adds what waits for the objects: a pool waits for its nodes, the machine config operator waits
// for the control plane pool, and a failing ClusterVersion waits for its operators.
func (c *cluster) addEffects(g *graph) {
	own, apiVersion := g.section.object()
	version := g.vertices[object{kind: kindVersion, name: clusterstate.VersionKey.Name}]
	for _, o := range slices.SortedFunc(maps.Keys(g.vertices), object.compare) {
		v := g.vertices[o]
		switch {
		case o.group != "":
		case o.kind == kindNode && g.section.pool != nil:
			pool := g.add(own, apiVersion)
			g.connect(v, pool)
			if g.section.required {
				g.connect(pool, g.add(object{kind: kindOperator, name: clusterstate.MachineConfigOperator}, "config.openshift.io/v1"))
			}
		case o.kind == kindPool && g.section.required && o.name == g.section.name:
			g.connect(v, g.add(object{kind: kindOperator, name: clusterstate.MachineConfigOperator}, "config.openshift.io/v1"))
		case o.kind == kindOperator && version != nil && len(version.facts) > 0:
			g.connect(v, version)
		}
	}
}

// chain is an unpublished cause, with its objects grouped by link.
type chain struct {
	section *section
	group   string
	fact
	links []link
}

type link struct {
	kind, reason    string
	summary, detail string
	depth           int
	objects         []*vertex
}

// chains returns one chain for each combination of kind and reason among the root objects. An object with
// several reasons gets a single chain.
func (g *graph) chains() []chain {
	type key struct{ group, kind, reason string }
	roots := map[key][]*vertex{}
	isRoot := map[*vertex]bool{}
	for _, v := range g.roots() {
		isRoot[v] = true
	}
	for _, o := range slices.SortedFunc(maps.Keys(g.vertices), object.compare) {
		v := g.vertices[o]
		for _, f := range v.facts {
			if isRoot[v] && f.reason == v.first().reason || f.isDecision() {
				k := key{v.group, v.kind, f.reason}
				roots[k] = append(roots[k], v)
			}
		}
	}
	var chains []chain
	for _, k := range slices.SortedFunc(maps.Keys(roots), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(order(a.kind), order(b.kind)), cmp.Compare(a.kind, b.kind), cmp.Compare(a.reason, b.reason))
	}) {
		chains = append(chains, g.chainOf(k.group, k.reason, roots[k]))
	}
	return chains
}

// first returns the fact that explains the other facts about an object. A lack of change explains nothing.
// Among the rest, the most severe fact comes first, then the oldest.
func (v *vertex) first() fact {
	stalled := func(f fact) int {
		if stalledReason(f.reason) {
			return 1
		}
		return 0
	}
	if len(v.facts) == 0 {
		return fact{}
	}
	return slices.MinFunc(v.facts, func(a, b fact) int {
		return cmp.Or(cmp.Compare(stalled(a), stalled(b)), cmp.Compare(b.level.Rank(), a.level.Rank()), a.since.Compare(b.since), cmp.Compare(a.reason, b.reason))
	})
}

// beside returns the other problems of an object whose chain starts with the given reason. If other findings
// also explain the object, a decision explains only that it is stuck.
func (v *vertex) beside(reason string) []fact {
	decided := slices.ContainsFunc(v.facts, func(f fact) bool { return f.reason == reason && f.isDecision() })
	var found []fact
	for _, f := range v.facts {
		explained := reason == v.first().reason
		if v.caused && decided {
			explained = stalledReason(f.reason)
		}
		if explained && f.reason != reason && !f.isDecision() {
			found = append(found, f)
		}
	}
	return found
}

// roots returns the objects that no other object explains, sorted. If objects explain each other in a cycle,
// the first one is a root.
func (g *graph) roots() []*vertex {
	sorted := slices.SortedFunc(maps.Keys(g.vertices), object.compare)
	var roots []*vertex
	reached := map[object]bool{}
	add := func(v *vertex) {
		roots = append(roots, v)
		g.reach(v, reached)
	}
	for _, o := range sorted {
		if v := g.vertices[o]; !v.caused {
			add(v)
		}
	}
	for _, o := range sorted {
		if !reached[o] {
			add(g.vertices[o])
		}
	}
	return roots
}

// reach adds all objects reachable from a vertex.
func (g *graph) reach(from *vertex, reached map[object]bool) {
	reached[from.object] = true
	for o := range from.effects {
		if !reached[o] {
			g.reach(g.vertices[o], reached)
		}
	}
}

// depths returns the objects of a chain with their distances from the roots.
func (g *graph) depths(from []*vertex) map[object]int {
	depths := map[object]int{}
	for _, v := range from {
		depths[v.object] = 0
	}
	full := *g.visits > maxVisits
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for o := range queue[0].effects {
			if _, seen := depths[o]; !seen && (!full || !g.covered[o]) {
				depths[o] = depths[queue[0].object] + 1
				queue = append(queue, g.vertices[o])
			}
		}
	}
	*g.visits += len(depths)
	for o := range depths {
		g.covered[o] = true
	}
	return depths
}

func (g *graph) chainOf(group, reason string, roots []*vertex) chain {
	depths := g.depths(roots)
	type key struct{ kind, reason string }
	links := map[key]*link{}
	put := func(v *vertex, f fact, depth int) {
		k := key{v.kind, f.reason}
		if depth == 0 {
			k.kind = "" // the first link holds all objects with the reason
		}
		l := links[k]
		if l == nil {
			l = &link{kind: v.kind, reason: f.reason, summary: f.summary, detail: f.detail}
			links[k] = l
		}
		l.depth, l.summary, l.detail = max(l.depth, depth), min(l.summary, f.summary), commonDetail(l.detail, f.detail)
		l.objects = append(l.objects, v)
	}
	made := chain{section: g.section, group: group}
	for _, o := range slices.SortedFunc(maps.Keys(depths), object.compare) {
		v, depth := g.vertices[o], 2*depths[o]
		if depth > 0 {
			for _, f := range v.asEffect() {
				put(v, f, depth)
			}
			continue
		}
		for _, f := range v.facts {
			if f.reason == reason {
				put(v, f, 0)
				made.note(f)
			}
		}
		for _, f := range v.beside(reason) {
			put(v, f, 1)
		}
	}
	for _, l := range links {
		made.links = append(made.links, *l)
	}
	slices.SortFunc(made.links, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(order(a.kind), order(b.kind)), cmp.Compare(a.kind, b.kind), cmp.Compare(a.reason, b.reason))
	})
	return made
}

// commonDetail returns the longest common prefix of two details, cut at a word boundary.
func commonDetail(a, b string) string {
	if a == b {
		return a
	}
	shared := 0
	for shared < len(a) && shared < len(b) && a[shared] == b[shared] {
		shared++
	}
	const separators = " :,;("
	ends := func(s string) bool { return shared == len(s) || strings.IndexByte(separators, s[shared]) >= 0 }
	end := shared
	if !ends(a) || !ends(b) {
		end = max(strings.LastIndexByte(a[:shared], ' '), 0)
	}
	return strings.TrimRight(a[:end], separators)
}

// asEffect returns the facts that describe an object in the chain of another object. For a node, a drain that
// cannot finish says the most. For other objects, the reported problems say more than the fact that they are
// stuck.
func (v *vertex) asEffect() []fact {
	effects := slices.DeleteFunc(slices.Clone(v.facts), fact.isDecision)
	if len(effects) == 0 {
		return []fact{{}}
	}
	stalled := func(f fact) bool { return stalledReason(f.reason) == (v.kind == kindNode) }
	if only := slices.DeleteFunc(slices.Clone(effects), func(f fact) bool { return !stalled(f) }); len(only) > 0 {
		return only
	}
	return effects
}

// isDecision reports whether the fact results from a user's decision to pause a pool or to uncordon a node
// during its drain. Such a fact is a root cause: no other object explains it.
func (f fact) isDecision() bool {
	return f.informer == checks.InformerNodes && (f.reason == reasonPoolPaused || f.reason == reasonDrainNotCordoned)
}

// note adds a fact to the first link. The chain takes the highest level and the earliest time.
func (c *chain) note(f fact) {
	switch {
	case c.reason == "" && c.level == "":
		c.fact = f
		return
	case f.level.Rank() > c.level.Rank():
		c.level = f.level
	}
	c.since = earlier(c.since, f.since)
}

// compareChains orders chains: those that block the update first, then by severity, then built-in informers
// before others, then by age.
func compareChains(a, b chain) int {
	return cmp.Or(
		cmp.Compare(b.weight(), a.weight()), cmp.Compare(b.level.Rank(), a.level.Rank()), cmp.Compare(a.group, b.group),
		a.since.Compare(b.since), cmp.Compare(a.section.name, b.section.name), cmp.Compare(a.reason, b.reason),
	)
}

// weight is 2 for a chain that leads from another problem to something stuck, and 1 for any other chain with
// something stuck or with an error.
func (c *chain) weight() int {
	stuck := slices.ContainsFunc(c.links, func(l link) bool { return stalledReason(l.reason) })
	switch {
	case stuck && !stalledReason(c.reason):
		return 2
	case stuck || c.level.Rank() >= updatev1beta1.LevelError.Rank():
		return 1
	}
	return 0
}

// mergeRest merges the chains above the limit into one that lists all of their objects.
func mergeRest(chains []chain) chain {
	rest := chain{section: chains[0].section, fact: fact{reason: ReasonOther, level: chains[0].level, since: chains[0].since}}
	one := link{reason: ReasonOther}
	for _, other := range chains {
		for _, l := range other.links {
			one.objects = append(one.objects, l.objects...)
		}
	}
	rest.links = []link{one}
	return rest
}

// causeOf converts a chain to a published cause.
func (c *cluster) causeOf(from *chain, budget *int) updatev1beta1.Cause {
	cause := updatev1beta1.Cause{
		Reason: from.reason, Level: from.level, Section: from.section.name, UpdateInformer: from.informer, Since: published(from.since),
	}
	if len(from.links) > maxLinks {
		last := &from.links[maxLinks-1]
		for _, l := range from.links[maxLinks:] {
			last.objects = append(last.objects, l.objects...)
		}
		from.links = from.links[:maxLinks]
	}
	for i := range from.links {
		l := &from.links[i]
		l.dedupe()
		groups := groupObjects(l.objects, budget)
		cause.Chain = append(cause.Chain, updatev1beta1.CauseLink{
			Reason: l.reason, Message: bounded(c.clause(from, i), 2048), Count: int32(min(l.count(), maxSeconds)), Objects: groups,
		})
	}
	cause.Remedy = c.remedyOf(from)
	return cause
}

func (l *link) dedupe() {
	slices.SortFunc(l.objects, func(a, b *vertex) int { return a.compare(b.object) })
	l.objects = slices.CompactFunc(l.objects, func(a, b *vertex) bool { return a.object == b.object })
}

// count counts the objects, not including stand-ins for insights without objects.
func (l *link) count() int {
	n := 0
	for _, v := range l.objects {
		if !v.none {
			n++
		}
	}
	return n
}

// groupObjects groups objects by kind and namespace until the budget is used up.
func groupObjects(objects []*vertex, budget *int) []updatev1beta1.ObjectGroup {
	var groups []updatev1beta1.ObjectGroup
	for _, v := range objects {
		if v.none {
			continue
		}
		at := len(groups) - 1
		added := len(v.name) + 4
		same := at >= 0 && groups[at].Kind == v.kind && groups[at].Namespace == v.namespace && groups[at].APIVersion == v.apiVersion
		if !same {
			added += len(v.kind) + len(v.namespace) + len(v.apiVersion) + 64
		}
		if *budget -= added; *budget < 0 {
			*budget = 0
			return groups
		}
		if !same {
			groups = append(groups, updatev1beta1.ObjectGroup{APIVersion: v.apiVersion, Kind: v.kind, Namespace: v.namespace})
			at++
		}
		groups[at].Names = append(groups[at].Names, v.name)
	}
	return groups
}
