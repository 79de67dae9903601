// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// How long nothing may change before a part of an update is stuck.
const (
	operatorLimit      = 30 * time.Minute
	machineConfigLimit = 90 * time.Minute
	drainLimit         = 60 * time.Minute
	nodeLimit          = 30 * time.Minute
	// maxLimit bounds what past updates extend: one night in which a drain was blocked must not hide
	// the next one for two.
	maxLimit = 4 * time.Hour
)

// refusedAfter is how late a pod may be forced before the drain counts as one that nothing ends.
const refusedAfter = 3 * checks.ForceInterval

// verdict is the judgment of a section.
type verdict struct {
	state v1beta1.AssessmentState
	// stuck are the parts that have not changed for too long.
	stuck []part
	// stalled reports that the whole section has not changed for too long.
	stalled bool
	// errors are the insights of level error and critical.
	errors []insight
	// behind reports that the section waits for the control plane.
	behind bool
	// unclear is why it is unknown whether the section progresses; empty means that it is known.
	unclear string
	// forcedAt is when the last pod is forced off the nodes that are stuck; zero means that none is.
	forcedAt time.Time

	detail      string
	detailSince time.Time
}

// judge decides the state of a section and describes what happens in it.
func (c *cluster) judge(s *section) {
	if s.pending {
		c.findStuck(s)
	}
	s.unclear = c.unclear(s)
	s.state = c.stateOf(s)
	s.detail, s.detailSince = c.describe(s)
}

func (c *cluster) stateOf(s *section) v1beta1.AssessmentState {
	switch {
	case s.pending && (len(s.errors) > 0 || len(s.stuck) > 0 || s.stalled):
		return v1beta1.StateStuck
	case !s.observed:
		return v1beta1.StateUnknown
	case !s.pending:
		return v1beta1.StateIdle
	case s.active.Status == metav1.ConditionFalse, !s.forcedAt.IsZero():
		return v1beta1.StateWaiting
	case s.active.Status != metav1.ConditionTrue, s.unclear != "":
		return v1beta1.StateUnknown
	case s.behind:
		return v1beta1.StateWaiting
	}
	return v1beta1.StateProgressing
}

// findStuck finds what holds a section whose update is pending.
func (c *cluster) findStuck(s *section) {
	for _, i := range s.insights {
		if severe(i) {
			s.errors = append(s.errors, i)
		}
	}
	if !s.readable {
		return // what is not seen may change
	}
	for _, p := range s.parts {
		if c.now.Sub(c.changeOf(s, p)) >= c.limit(s, p) {
			s.stuck = append(s.stuck, p)
		}
	}
	plane := c.controlPlane()
	s.behind = s != plane && !s.begun() && plane.pending
	s.stalled = c.isStalled(s)
	c.expectForcedDrains(s)
}

// severe reports whether an insight holds an update until a person acts.
func severe(i insight) bool { return rank(i.Impact.Level) >= rank(v1beta1.LevelError) }

// changeOf returns when a part last changed. The machine config operator changes as its nodes do.
func (c *cluster) changeOf(s *section, p part) time.Time {
	if s.controlPlane && p.name == clusterstate.MachineConfigOperator {
		for _, other := range c.sections {
			if other.master && other.lastChange.After(p.lastChange) {
				return other.lastChange
			}
		}
	}
	return p.lastChange
}

// limit returns how long a part may be unchanged: a fixed time, or twice the longest that was observed
// in past updates.
func (c *cluster) limit(s *section, p part) time.Duration {
	limit, longest := nodeLimit, time.Duration(0)
	switch {
	case s.controlPlane && p.name == clusterstate.MachineConfigOperator:
		limit, longest = machineConfigLimit, c.longestOperator(p.name)
	case s.controlPlane:
		limit, longest = operatorLimit, c.longestOperator(p.name)
	case p.phase == phaseDraining:
		limit, longest = drainLimit, c.longestNode(s.name)
	default:
		longest = c.longestNode(s.name)
	}
	return max(limit, min(2*longest, maxLimit))
}

// longestOperator returns the longest time that an operator was the next one in a past update.
func (c *cluster) longestOperator(name string) time.Duration {
	var longest int32
	for _, update := range c.past {
		at := slices.IndexFunc(update.Operators, func(o v1beta1.OperatorOffset) bool { return o.Name == name })
		if at < 0 {
			continue
		}
		var before int32
		for _, o := range update.Operators {
			if o.Seconds < update.Operators[at].Seconds {
				before = max(before, o.Seconds)
			}
		}
		longest = max(longest, update.Operators[at].Seconds-before)
	}
	return time.Duration(longest) * time.Second
}

// longestNode returns the longest time that a node of a pool took in past updates.
func (c *cluster) longestNode(pool string) time.Duration {
	var longest int32
	for _, update := range c.past {
		for _, p := range update.Pools {
			if p.Name == pool {
				longest = max(longest, p.LongestSeconds)
			}
		}
	}
	return time.Duration(longest) * time.Second
}

// isStalled reports whether a section in which no part is being updated has not changed for too long,
// although nothing pauses it. The limit is that of its next part. A section whose last change is
// unknown counts from when it was first judged. A pool that is no MachineConfigPool has no parts, so
// that its pace is unknown: it is never stalled.
func (c *cluster) isStalled(s *section) bool {
	if s.master || s.behind || len(s.parts) > 0 || s.active.Status != metav1.ConditionTrue || !s.controlPlane && !s.isConfigPool() {
		return false
	}
	limit := nodeLimit
	if s.controlPlane {
		limit = operatorLimit
		if s.total-s.updated == 1 && !c.isUpdated(clusterstate.MachineConfigOperator) {
			limit = max(machineConfigLimit, min(2*c.longestOperator(clusterstate.MachineConfigOperator), maxLimit))
		}
	}
	since := s.lastChange
	if plane := c.controlPlane(); !s.controlPlane && plane.completed.After(since) {
		since = plane.completed
	}
	if since.IsZero() {
		since = c.stateSince(s)
	}
	s.lastChange = since
	return !since.IsZero() && c.now.Sub(since) >= limit
}

func (c *cluster) isUpdated(operator string) bool {
	return slices.ContainsFunc(c.in.Facts.Operators, func(o clusterstate.ClusterOperator) bool {
		return o.Name == operator && c.in.Facts.IsOperatorUpdated(o)
	})
}

// stateSince returns since when the last assessment has the section in its state, else now.
func (c *cluster) stateSince(s *section) time.Time {
	if s.previous != nil && plausible(s.previous.Since.Time, c.now) {
		return s.previous.Since.Time
	}
	return c.now
}

// expectForcedDrains removes the drains that an upgrade forces at a known time from what is stuck. All
// of the pods must be forced in time, else the drain does not end.
func (c *cluster) expectForcedDrains(s *section) {
	var latest time.Time
	s.stuck = slices.DeleteFunc(s.stuck, func(p part) bool {
		at, forced := c.forcedAt(p)
		if p.phase != phaseDraining || !forced {
			return false
		}
		if at.After(latest) {
			latest = at
		}
		return true
	})
	s.forcedAt = latest
}

// forcedAt returns when the last pod of a drain is forced; false means that nothing ends the drain.
func (c *cluster) forcedAt(p part) (time.Time, bool) {
	drain, found := c.in.Facts.Drains[p.name]
	if !found || drain.Start.IsZero() {
		return time.Time{}, false
	}
	if !drain.Read {
		return c.unreadForcedAt(drain)
	}
	if len(drain.Pods) == 0 {
		return time.Time{}, false
	}
	// The timeout of pods that no budget protects is a setting of the operator, which is not known here.
	deadlines := checks.NewDrainDeadlines(drain.Start, -1, c.budgetTimeout())
	var latest time.Time
	for _, pod := range drain.Pods {
		at := pod.Hold(deadlines).ForcedAt()
		if at.IsZero() || c.now.After(at.Add(refusedAfter)) {
			return time.Time{}, false
		}
		if at.After(latest) {
			latest = at
		}
	}
	return latest, true
}

// unreadForcedAt returns when pods are forced that were not read because of the bound of the lists: at
// the timeout of the upgrade. Of pods that cannot be read, that is not known.
func (c *cluster) unreadForcedAt(drain informers.Drain) (time.Time, bool) {
	timeout := c.budgetTimeout()
	at := drain.Start.Add(timeout)
	if _, missing := c.in.Facts.Missing[informers.SourcePods]; missing || timeout < 0 || c.now.After(at.Add(refusedAfter)) {
		return time.Time{}, false
	}
	return at, true
}

// budgetTimeout returns after which time the upgrade in progress forces pods that a budget protects; a
// negative one means never.
func (c *cluster) budgetTimeout() time.Duration {
	for i := range c.in.Facts.Upgrades {
		if u := &c.in.Facts.Upgrades[i]; u.InProgress() && u.PDBTimeout >= 0 {
			return u.PDBTimeout
		}
	}
	return -1
}

// describe returns what happens in a section, and since when.
func (c *cluster) describe(s *section) (string, time.Time) {
	switch {
	case !s.observed:
		return "unknown", time.Time{}
	case !s.pending:
		return c.describeDone(s), time.Time{}
	case s.controlPlane && len(s.errors) > 0:
		return s.describeFailing()
	case len(s.parts) > 0:
		return s.describeParts()
	case s.state == v1beta1.StateStuck && s.stalled:
		return "no progress", s.lastChange
	case s.active.Status == metav1.ConditionFalse:
		return "paused" + slotsText(s, ", then "), time.Time{}
	case s.pool != nil && !s.isConfigPool() && s.updating > 0:
		// The sections of the MachineConfigPools name them.
		return fmt.Sprintf("%d being updated", s.updating), time.Time{}
	case c.controlPlane().state == v1beta1.StateStuck:
		return "pending", time.Time{}
	case s.controlPlane:
		return "in progress", time.Time{}
	}
	return "pending" + slotsText(s, ", "), time.Time{}
}

func (c *cluster) describeDone(s *section) string {
	switch {
	case !c.anyPending():
		return ""
	case s.controlPlane && len(c.in.Facts.Version.Updates) > 0:
		if took := c.in.Facts.Version.Updates[0].Duration(); took > 0 {
			return "done after " + minutes(took)
		}
	case !s.started.IsZero() && s.completed.After(s.started):
		return "done after " + minutes(s.completed.Sub(s.started))
	}
	return "done"
}

// describeFailing names the operators that fail, and counts those that wait.
func (s *section) describeFailing() (string, time.Time) {
	names := s.failingOperators()
	waiting := s.total - s.updated - int32(min(len(names), maxParts))
	switch {
	case len(names) == 0:
		return "failing", time.Time{}
	case waiting > 0:
		return clean(fmt.Sprintf("%s failing; %d waiting", text.JoinNames(names), waiting)), time.Time{}
	}
	return clean(text.JoinNames(names) + " failing"), time.Time{}
}

// describeParts names the parts by phase, those that began first at the front.
func (s *section) describeParts() (string, time.Time) {
	parts := slices.Clone(s.parts)
	slices.SortStableFunc(parts, func(a, b part) int { return a.lastChange.Compare(b.lastChange) })
	var phases []string
	names := map[string][]string{}
	for _, p := range parts {
		if len(names[p.phase]) == 0 {
			phases = append(phases, p.phase)
		}
		names[p.phase] = append(names[p.phase], p.name)
	}
	var described []string
	for _, phase := range phases {
		described = append(described, clean(joinInOrder(names[phase])+" "+phase))
	}
	return joinClauses(described), parts[0].lastChange
}

// slotsText returns how many nodes of a pool are updated at a time.
func slotsText(s *section, before string) string {
	if s.slots == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d at a time", before, s.slots)
}

// slotsOf returns how many nodes of a pool may be unavailable at a time; 0 means that this is unknown.
func (c *cluster) slotsOf(s *section) int32 {
	if !s.isConfigPool() {
		return 0
	}
	for i := range c.in.Facts.Pools {
		if p := &c.in.Facts.Pools[i]; p.Name == s.name {
			return count(p.Slots(int(s.total)))
		}
	}
	return 0
}

var levels = []v1beta1.Level{v1beta1.LevelStatus, v1beta1.LevelInfo, v1beta1.LevelWarning, v1beta1.LevelError, v1beta1.LevelCritical}

// rank returns the severity of a level. An unknown level counts as a warning.
func rank(level v1beta1.Level) int {
	if at := slices.Index(levels, level); at >= 0 {
		return at
	}
	return slices.Index(levels, v1beta1.LevelWarning)
}
