// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// controlPlane is the name of the first section.
const controlPlane = "control plane"

const (
	unitOperators = "operators"
	unitNodes     = "nodes"
)

// Phases of a part.
const (
	phaseUpdating  = "updating"
	phaseDraining  = "draining"
	phaseRebooting = "rebooting"
)

// section is the control plane or a pool.
type section struct {
	name string
	pool *updatev1beta1.ResourceReference
	unit string
	// controlPlane marks the section of the operators. master marks the section of the control plane nodes.
	controlPlane, master bool
	// required is set if the control plane waits for the nodes of the section.
	required bool

	// observed is set if it is known whether an update is pending. pending is set if one is.
	observed, pending bool
	// unobserved explains why this is not known.
	unobserved string
	// readable is set if changes in the section are visible.
	readable bool
	active   metav1.Condition

	total, updated, unavailable int32
	// updating is the number of nodes in progress, as counted in the status.
	updating int32
	// slots is how many nodes can be updated in parallel, or 0 if this is unknown.
	slots    int32
	insights []insight

	previous *updatev1beta1.SectionAssessment
	parts    []part
	// done holds the nodes that were completed since the last assessment.
	done        []doneNode
	nodeSeconds []int32
	operators   []updatev1beta1.OperatorOffset

	started, completed, lastChange time.Time
	// lastUpdated is the time when an operator update was last observed.
	lastUpdated time.Time
	// fingerprint identifies the reports of the section's objects.
	fingerprint string

	verdict
}

// insight pairs an insight with the name of its informer.
type insight struct {
	*updatev1beta1.Insight
	informer string
}

// part is an operator or node in progress.
type part struct {
	name, phase         string
	started, lastChange time.Time
	// unknown is set if nothing shows when the current phase started. The times are then those of the first
	// observation.
	unknown bool
}

// doneNode is a node whose update has completed.
type doneNode struct {
	name string
	took time.Duration
}

// read reads the conditions, counts, and insights of a section. A section is not observed if its conditions
// are missing or neither true nor false.
func (s *section) read(from *updatev1beta1.Section) {
	pending := condition(from.Conditions, updatev1beta1.ConditionUpdatePending)
	s.active = condition(from.Conditions, updatev1beta1.ConditionUpdateActive)
	s.observed = pending.Status == metav1.ConditionTrue || pending.Status == metav1.ConditionFalse
	s.pending = pending.Status == metav1.ConditionTrue
	if !s.observed {
		s.unobserved = strings.TrimSuffix(clean(pending.Message), ".")
	}
	if p := from.Progress; p != nil {
		s.total, s.updated, s.unavailable = max(p.Total, 0), min(max(p.Updated, 0), max(p.Total, 0)), max(p.Unavailable, 0)
		s.updating = min(max(p.Updating, 0), s.total)
	}
	for i := range from.UpdateInformers {
		informer := &from.UpdateInformers[i]
		for j := range informer.Insights {
			s.insights = append(s.insights, insight{Insight: &informer.Insights[j], informer: informer.Name})
		}
	}
}

func condition(conditions []metav1.Condition, name string) metav1.Condition {
	for _, c := range conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{}
}

// remember restores the section from the last assessment if that was about the same update. A section that
// cannot be read now keeps its state, because missing data does not count as a change.
func (c *cluster) remember(s *section) {
	if !c.sameUpdate {
		return
	}
	for i := range c.in.Previous.Sections {
		previous := &c.in.Previous.Sections[i]
		if previous.Name == s.name && refOf(previous.Pool) == refOf(s.pool) {
			s.previous = previous
			s.started, s.completed = c.notLater(previous.StartedTime), c.notLater(previous.CompletionTime)
			if c.anyPending() || !c.started.IsZero() { // a finished update has already become a past update
				s.nodeSeconds, s.operators = slices.Clone(previous.NodeSeconds), slices.Clone(previous.Operators)
			}
			s.lastChange = c.notLater(previous.LastChangeTime)
			if !s.readable {
				s.keep(previous)
			}
			return
		}
	}
}

// keep copies the counts and the parts of the last assessment.
func (s *section) keep(previous *updatev1beta1.SectionAssessment) {
	s.total, s.updated = previous.Total, previous.Updated
	for _, p := range previous.Parts {
		s.parts = append(s.parts, part{
			name: p.Name, phase: p.Phase, started: p.StartedTime.Time, lastChange: later(p.LastChangeTime.Time, p.StartedTime.Time), unknown: p.LastChangeTime.IsZero(),
		})
	}
}

// notLater returns a time unless it is in the future, in which case it returns zero.
func (c *cluster) notLater(t *metav1.Time) time.Time {
	if at := text.TimeOf(t); plausible(at, c.now) {
		return at
	}
	return time.Time{}
}

func refOf(r *updatev1beta1.ResourceReference) updatev1beta1.ResourceReference {
	if r == nil {
		return updatev1beta1.ResourceReference{}
	}
	return *r
}

// plausible reports whether a recorded time can be right.
func plausible(at, now time.Time) bool { return clusterstate.IsPlausible(at, now) }

// readParts determines what is being updated in a section.
func (c *cluster) readParts(s *section) {
	switch {
	case !s.pending:
		return
	case s.controlPlane:
		c.readOperators(s)
	default:
		c.readNodes(s)
	}
	slices.SortFunc(s.parts, func(a, b part) int { return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.name, b.name)) })
	if len(s.parts) > maxParts {
		s.parts = s.parts[:maxParts]
	}
}

// readOperators lists the progressing operators that are not at the version of the release.
func (c *cluster) readOperators(s *section) {
	if c.started.IsZero() {
		return // their conditions are from an earlier update
	}
	operators, _ := c.in.Facts.ReleaseOperators()
	for i := range operators {
		operator := &operators[i]
		if c.in.Facts.IsOperatorUpdated(*operator) {
			at, known := c.operatorTime(operator)
			s.noteOperator(operator.Name, c.started, at)
			if known {
				s.lastUpdated = later(s.lastUpdated, at)
			}
			continue
		}
		c.readOutdatedOperator(s, operator)
	}
}

// readOutdatedOperator lists an operator that is not at the version of the release if it is progressing.
func (c *cluster) readOutdatedOperator(s *section, operator *clusterstate.ClusterOperator) {
	if !operator.Progressing.IsTrue() {
		return
	}
	since := operator.Progressing.Since
	if !plausible(since, c.now) || since.Before(c.started) {
		if !c.in.Facts.Version.WaitsFor(operator.Name) && plausible(since, c.now) {
			return // has been progressing for another reason since before the update
		}
		since = c.started
	}
	s.addPart(operator.Name, phaseUpdating, cmp.Or(since, c.now))
}

// operatorTime returns when an operator was updated according to its conditions. If they do not show it, it
// returns now, as the latest possible time, and false.
func (c *cluster) operatorTime(operator *clusterstate.ClusterOperator) (time.Time, bool) {
	at := operator.Progressing.Since
	if operator.Progressing.IsFalse() && plausible(at, c.now) && at.After(c.started) {
		return at, true
	}
	return c.now, false
}

// noteOperator records when an operator was updated.
func (s *section) noteOperator(name string, started, at time.Time) {
	if started.IsZero() || len(s.operators) >= maxOperators || len(name) > maxName || name == "" ||
		slices.ContainsFunc(s.operators, func(o updatev1beta1.OperatorOffset) bool { return o.Name == name }) {
		return
	}
	s.operators = append(s.operators, updatev1beta1.OperatorOffset{Name: name, Seconds: seconds(at.Sub(started))})
}

// readNodes lists the nodes that builtin-nodes reports as being updated. Stale insights do not count because
// they show an earlier state. Other informers do not count, so they cannot make a section look as if it made
// progress.
func (c *cluster) readNodes(s *section) {
	for _, i := range s.insights {
		if i.informer != checks.InformerNodes || i.Impact.Level != updatev1beta1.LevelStatus || i.StaleSince != nil {
			continue
		}
		since := i.FirstObservedTime.Time
		if !plausible(since, c.now) {
			since = c.now
		}
		for _, r := range i.Scope.Resources {
			if r.Kind == kindNode {
				s.addNode(r.Name, i.Impact.Reason, since, since.Equal(c.now))
			}
		}
	}
	rollout := c.rolloutOf(s)
	if rollout == nil {
		return
	}
	for i := range rollout.Nodes {
		if n := &rollout.Nodes[i]; n.Step != clusterstate.StepNone {
			since := c.stepSince(n)
			s.addNode(n.Node.Name, string(n.Step), cmp.Or(since, c.now), since.IsZero())
		}
	}
	c.readDoneNodes(s, rollout)
}

// addNode adds a node in progress. If guessed is set, nothing shows when the phase started, so the time is
// unknown unless an earlier status contained the node.
func (s *section) addNode(name, reason string, since time.Time, guessed bool) {
	if p := s.addPart(name, phaseOf(reason), since); p != nil {
		p.unknown = p.unknown || guessed && s.previous == nil
	}
}

// rolloutOf returns the progress of a section's nodes, or nil if it is unknown.
func (c *cluster) rolloutOf(s *section) *clusterstate.PoolProgress {
	if !s.isConfigPool() {
		return nil
	}
	return c.rollouts[s.name]
}

// isConfigPool reports whether the section is a MachineConfigPool.
func (s *section) isConfigPool() bool { return s.pool != nil && s.pool.Kind == kindPool }

// stepSince returns when a node's current step started, or zero if the node does not show it.
func (c *cluster) stepSince(n *clusterstate.NodeProgress) time.Time {
	if drain, found := c.in.Facts.Drains[n.Node.Name]; found && n.Step == clusterstate.StepDraining && plausible(drain.Start, c.now) {
		return drain.Start
	}
	return time.Time{}
}

func phaseOf(reason string) string {
	switch reason = strings.ToLower(reason); {
	case strings.Contains(reason, "drain"):
		return phaseDraining
	case strings.Contains(reason, "reboot"):
		return phaseRebooting
	}
	return phaseUpdating
}

// addPart adds a part and restores its start time from the last assessment. The time of an earlier phase
// counts as part of the same node update. It returns nil if the part already exists.
func (s *section) addPart(name, phase string, since time.Time) *part {
	if name == "" || len(name) > maxName || slices.ContainsFunc(s.parts, func(p part) bool { return p.name == name }) {
		return nil
	}
	p := part{name: name, phase: phase, started: since, lastChange: since}
	if before := s.previousPart(name); before != nil {
		if at := before.StartedTime.Time; !at.IsZero() && at.Before(p.started) {
			p.started = at
		}
		switch at := before.LastChangeTime.Time; {
		case before.Phase != phase:
		case at.IsZero():
			p.lastChange, p.unknown = p.started, true
		case at.Before(p.lastChange):
			p.lastChange = at
		}
	}
	s.parts = append(s.parts, p)
	return &s.parts[len(s.parts)-1]
}

func (s *section) previousPart(name string) *updatev1beta1.SectionPart {
	if s.previous == nil {
		return nil
	}
	at := slices.IndexFunc(s.previous.Parts, func(p updatev1beta1.SectionPart) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &s.previous.Parts[at]
}

// readDoneNodes records how long completed nodes took. Nodes that were deleted do not count.
func (c *cluster) readDoneNodes(s *section, rollout *clusterstate.PoolProgress) {
	if s.previous == nil {
		return
	}
	left := map[string]*updatev1beta1.SectionPart{}
	for i := range s.previous.Parts {
		p := &s.previous.Parts[i]
		if !slices.ContainsFunc(s.parts, func(now part) bool { return now.name == p.Name }) {
			left[p.Name] = p
		}
	}
	if len(left) == 0 {
		return
	}
	for i := range rollout.Nodes {
		n := &rollout.Nodes[i]
		p, found := left[n.Node.Name]
		if !found || !n.Updated() || !n.Node.Ready {
			continue
		}
		took := c.now.Sub(p.StartedTime.Time)
		if took <= 0 || p.StartedTime.IsZero() {
			continue
		}
		s.done = append(s.done, doneNode{name: n.Node.Name, took: took})
		if len(s.nodeSeconds) < maxSamples {
			s.nodeSeconds = append(s.nodeSeconds, seconds(took))
		}
	}
}

// readChanges determines when the section last changed: a count differs from the last assessment, a part has
// started, or an operator or node has become ready.
func (c *cluster) readChanges(s *section) {
	if !s.pending {
		c.readCompletion(s)
		return
	}
	s.completed = time.Time{}
	change := func(at time.Time) {
		if plausible(at, c.now) && at.After(s.lastChange) {
			s.lastChange = at
		}
	}
	for _, p := range s.parts {
		if !p.unknown {
			change(p.lastChange)
		}
		if s.started.IsZero() || p.started.Before(s.started) {
			s.started = p.started
		}
	}
	if s.previous != nil && (s.previous.Updated != s.updated || len(s.done) > 0) {
		change(c.now)
		s.lastUpdated = c.now
	}
	progress := clusterstate.Progress{Changed: s.lastChange}
	if s.previous != nil {
		progress.Fingerprint = s.previous.Fingerprint
	}
	progress = progress.Observe(c.awaited(s), c.now)
	s.fingerprint = progress.Fingerprint
	change(progress.Changed)
	switch {
	case s.controlPlane:
		s.started = c.started
		change(c.started)
		change(s.lastUpdated)
	case s.begun():
		c.nodesReady(s, change)
	}
}

// awaited returns what the objects of a section report to be waiting for.
func (c *cluster) awaited(s *section) clusterstate.Awaited {
	rollout := c.rolloutOf(s)
	switch {
	case s.controlPlane && !c.started.IsZero():
		return clusterstate.AwaitedOperators(c.in.Facts.Version, c.in.Facts.Operators, c.in.Facts.IsOperatorUpdated)
	case s.controlPlane || rollout == nil:
		return clusterstate.Awaited{}
	}
	var a clusterstate.Awaited
	a.AddPool(rollout, func(n clusterstate.Node) []clusterstate.DrainedPod { return c.in.Facts.Drains[n.Name].Pods })
	if build, building := c.imageBuildOf(s); building {
		a.AddBuild(build)
	}
	return a
}

// readCompletion determines when a section without a pending update was completed, from the history or from
// the last assessment.
func (c *cluster) readCompletion(s *section) {
	switch newest := c.in.Facts.NewestUpdate(); {
	case !s.observed: // it may still be pending
	case s.controlPlane:
		s.completed = newest.End
	case s.completed.IsZero() && s.previous != nil && s.previous.State != updatev1beta1.StateIdle:
		s.completed = c.now
	}
}

// nodesReady calls change with the times at which nodes of the pool became ready since the update started.
// Each of these nodes has rebooted.
func (c *cluster) nodesReady(s *section, change func(time.Time)) {
	rollout := c.rolloutOf(s)
	if rollout == nil || s.previous != nil {
		return // the counts already show it
	}
	for i := range rollout.Nodes {
		if n := &rollout.Nodes[i]; n.Node.Ready && n.Node.ReadySince.After(c.started) {
			change(n.Node.ReadySince)
		}
	}
}

// begun reports whether the update of the section has started.
func (s *section) begun() bool { return s.controlPlane || len(s.parts) > 0 || s.updated > 0 }

// printed reports whether the section gets its own line of progress. The control plane nodes do only while
// they are being updated, because machine-config represents them otherwise.
func (s *section) printed() bool {
	switch {
	case s.controlPlane:
		return true
	case s.master:
		return s.pending && (s.state == updatev1beta1.StateStuck || len(s.parts) > 0 || s.updated > 0 && s.updated < s.total)
	}
	return s.pending || s.total > 0
}

// result converts the section to its published form.
func (s *section) result(now time.Time) updatev1beta1.SectionAssessment {
	out := updatev1beta1.SectionAssessment{
		Name: s.name, Pool: s.pool, State: s.state, Since: published(now), Unit: s.unit, Total: s.total, Updated: s.updated,
		LastChangeTime: timePtr(s.lastChange), StartedTime: timePtr(s.started), CompletionTime: timePtr(s.completed),
		NodeSeconds: s.nodeSeconds, Operators: s.operators, Detail: s.detail, DetailSince: timePtr(s.detailSince),
		Slots: s.slots, Fingerprint: s.fingerprint,
	}
	if p := s.previous; p != nil && p.State == s.state && plausible(p.Since.Time, now) {
		out.Since = p.Since
	}
	for _, p := range s.parts {
		published := updatev1beta1.SectionPart{Name: p.name, Phase: p.phase, StartedTime: published(p.started), LastChangeTime: published(p.lastChange)}
		if p.unknown {
			published.LastChangeTime = metav1.Time{}
		}
		out.Parts = append(out.Parts, published)
	}
	return out
}

// count limits a number to the range of the API.
func count(n int) int32 { return int32(min(max(n, 0), maxSeconds)) }

// seconds converts a duration to seconds within the range of the API.
func seconds(d time.Duration) int32 { return int32(min(max(d/time.Second, 0), maxSeconds)) }
