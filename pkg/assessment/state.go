// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// How long a part of an update may remain unchanged before it is stuck.
const (
	operatorLimit      = 30 * time.Minute
	machineConfigLimit = 90 * time.Minute
	installationLimit  = 60 * time.Minute
	drainLimit         = 60 * time.Minute
	nodeLimit          = 30 * time.Minute
	imageBuildLimit    = 60 * time.Minute
	// maxLimit limits how much past updates can raise a limit. One drain that was blocked all night must not
	// hide the next one.
	maxLimit = 4 * time.Hour
)

// refusedAfter is how late a forced pod may be before the drain counts as never ending.
const refusedAfter = 3 * clusterstate.ForceInterval

// verdict is the judgment on a section.
type verdict struct {
	state updatev1beta1.AssessmentState
	// stuck lists the parts that have not changed for too long.
	stuck []part
	// stalled is set if the whole section has not changed for too long.
	stalled bool
	// refused holds errors that block the section until someone acts: the requested release was refused, or a
	// step of one of our upgrades failed.
	refused []insight
	// failing is set if the cluster version operator has been failing for too long. failingSince is when it
	// started to fail, or zero if this is unknown.
	failing      bool
	failingSince time.Time
	// behind is set if the section waits for the control plane.
	behind bool
	// unclear explains why it is unknown whether the section makes progress. It is empty if this is known.
	unclear string
	// forcedAt is when the last pod is forced off the blocked nodes, or zero if no pods are forced.
	forcedAt time.Time

	detail      string
	detailSince time.Time
}

// judge decides the state of a section and describes its activity.
func (c *cluster) judge(s *section) {
	if s.pending {
		c.findStuck(s)
	}
	s.unclear = c.unclear(s)
	s.state = c.stateOf(s)
	s.detail, s.detailSince = c.describe(s)
}

func (c *cluster) stateOf(s *section) updatev1beta1.AssessmentState {
	switch {
	case s.pending && (len(s.refused) > 0 || s.failing || len(s.stuck) > 0 || s.stalled):
		return updatev1beta1.StateStuck
	case !s.observed:
		return updatev1beta1.StateUnknown
	case !s.pending:
		return updatev1beta1.StateIdle
	case s.active.Status == metav1.ConditionFalse, !s.forcedAt.IsZero():
		return updatev1beta1.StateWaiting
	case s.active.Status != metav1.ConditionTrue, s.unclear != "":
		return updatev1beta1.StateUnknown
	case s.behind:
		return updatev1beta1.StateWaiting
	}
	return updatev1beta1.StateProgressing
}

// findStuck finds what blocks a section with a pending update: a refusal, or a lack of change for too long.
// Other insights, however severe, do not prove that the update is blocked.
func (c *cluster) findStuck(s *section) {
	for _, i := range s.insights {
		if refuses(i) {
			s.refused = append(s.refused, i)
		}
	}
	if !s.readable {
		return // there may be changes that are not visible
	}
	for _, p := range s.parts {
		if (clusterstate.Progress{Changed: c.changeOf(s, p)}).IsStuck(c.limit(s, p), c.now) {
			s.stuck = append(s.stuck, p)
		}
	}
	c.findFailing(s)
	plane := c.controlPlane()
	s.behind = s != plane && !s.required && !s.begun() && plane.pending
	s.stalled = c.isStalled(s)
	c.expectForcedDrains(s)
}

// severe reports whether an insight is an error.
func severe(i insight) bool { return i.Impact.Level.Rank() >= updatev1beta1.LevelError.Rank() }

// refuses reports whether an insight is a refusal, which blocks an update until someone acts.
func refuses(i insight) bool {
	return severe(i) && (i.Impact.Reason == reasonReleaseRefused && i.informer == checks.InformerControlPlane ||
		i.Impact.Reason == reasonUpgradeFailed && i.informer == checks.InformerUpgrades)
}

// findFailing checks whether the cluster version operator has been failing for too long without updating
// another operator.
func (c *cluster) findFailing(s *section) {
	if !s.controlPlane || !c.in.Facts.Version.Failing.IsTrue() || c.started.IsZero() {
		return
	}
	since := c.in.Facts.FailingSince()
	if since.IsZero() { // fall back to the first observation
		for _, i := range s.insights {
			if i.Impact.Reason == reasonVersionFailing && i.informer == checks.InformerControlPlane {
				since = i.FirstObservedTime.Time
			}
		}
	}
	s.failingSince = since
	since = later(since, s.lastUpdated)
	s.failing = plausible(since, c.now) && c.now.Sub(since) >= checks.FailingLimit
}

// changeOf returns when a part or its section last changed, or zero if this is unknown. The machine config
// operator changes whenever its nodes do.
func (c *cluster) changeOf(s *section, p part) time.Time {
	last := s.lastChange
	switch {
	case p.unknown && last.IsZero() && p.started.Before(c.now):
		last = p.started // time of the first observation
	case !p.unknown:
		last = later(last, p.lastChange)
	}
	if s.controlPlane && p.name == clusterstate.MachineConfigOperator {
		for _, other := range c.sections {
			if other.required {
				last = later(last, other.lastChange)
			}
		}
	}
	return last
}

// limit returns how long a part may remain unchanged: a fixed time, or twice the longest time in past
// updates.
func (c *cluster) limit(s *section, p part) time.Duration {
	limit, longest := nodeLimit, time.Duration(0)
	switch {
	case s.controlPlane:
		limit, longest = c.operatorLimit(p.name), c.longestOperator(p.name)
	case p.phase == phaseDraining:
		limit, longest = drainLimit, c.longestNode(s.name)
	default:
		longest = c.longestNode(s.name)
	}
	return max(limit, min(2*longest, maxLimit))
}

// operatorLimit returns how long an operator may remain unchanged. The limit is longer during an
// installation.
func (c *cluster) operatorLimit(name string) time.Duration {
	switch {
	case name == clusterstate.MachineConfigOperator:
		return machineConfigLimit
	case c.in.Facts.Version.UpdateKind(0) == clusterstate.UpdateInstallation:
		return installationLimit
	}
	return operatorLimit
}

// longestOperator returns the longest time that past updates spent on this operator before moving on.
func (c *cluster) longestOperator(name string) time.Duration {
	var longest int32
	for _, update := range c.past {
		at := slices.IndexFunc(update.Operators, func(o updatev1beta1.OperatorOffset) bool { return o.Name == name })
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

// longestNode returns the longest time of any node of a pool in past updates.
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

// isStalled reports whether a section without parts in progress has not changed for too long although nothing
// pauses it. The limit is the one for its next part. If the last change is unknown, the time counts from the
// first assessment. Pools other than MachineConfigPools have no parts. Their pace is unknown, so they are
// never stalled.
func (c *cluster) isStalled(s *section) bool {
	if s.master || s.behind || len(s.parts) > 0 || s.active.Status != metav1.ConditionTrue || !s.controlPlane && !s.isConfigPool() {
		return false
	}
	limit := nodeLimit
	if _, building := c.imageBuildOf(s); building {
		limit = imageBuildLimit
	}
	if s.controlPlane {
		limit = c.operatorLimit("")
		if c.onlyNodesLeft(s) {
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
	return clusterstate.Progress{Changed: since}.IsStuck(limit, c.now)
}

func (c *cluster) isUpdated(operator string) bool {
	return slices.ContainsFunc(c.in.Facts.Operators, func(o clusterstate.ClusterOperator) bool {
		return o.Name == operator && c.in.Facts.IsOperatorUpdated(o)
	})
}

// stateSince returns when the section entered its state according to the last assessment, or now.
func (c *cluster) stateSince(s *section) time.Time {
	if s.previous != nil && plausible(s.previous.Since.Time, c.now) {
		return s.previous.Since.Time
	}
	return c.now
}

// expectForcedDrains removes drains from the stuck parts if an upgrade will force them at a known time. This
// requires that all pods are forced in time, because otherwise the drain does not end.
func (c *cluster) expectForcedDrains(s *section) {
	var latest time.Time
	s.stuck = slices.DeleteFunc(s.stuck, func(p part) bool {
		at, forced := c.forcedAt(p)
		if p.phase != phaseDraining || !forced {
			return false
		}
		latest = later(latest, at)
		return true
	})
	s.forcedAt = latest
}

// forcedAt returns when the last pod of a drain is forced, or false if nothing ends the drain.
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
	// The timeout for pods without a PodDisruptionBudget is a setting of the operator and is not known here.
	deadlines := clusterstate.NewDrainDeadlines(drain.Start, -1, c.budgetTimeout())
	var latest time.Time
	for _, pod := range drain.Pods {
		at := pod.Hold(deadlines).ForcedAt()
		if at.IsZero() || c.now.After(at.Add(refusedAfter)) {
			return time.Time{}, false
		}
		latest = later(latest, at)
	}
	return latest, true
}

// unreadForcedAt returns when pods that exceeded the list limit are forced, based on the upgrade's timeout.
// If pods cannot be read at all, this is unknown.
func (c *cluster) unreadForcedAt(drain checks.DrainingNode) (time.Time, bool) {
	timeout := c.budgetTimeout()
	at := drain.Start.Add(timeout)
	if _, missing := c.in.Facts.Missing[checks.SourcePods]; missing || timeout < 0 || c.now.After(at.Add(refusedAfter)) {
		return time.Time{}, false
	}
	return at, true
}

// budgetTimeout returns the time after which the current upgrade forces pods protected by a
// PodDisruptionBudget. It returns a negative value for never.
func (c *cluster) budgetTimeout() time.Duration {
	for i := range c.in.Facts.Upgrades {
		if u := &c.in.Facts.Upgrades[i]; u.InProgress() && u.PDBTimeout >= 0 {
			return u.PDBTimeout
		}
	}
	return -1
}

// describe describes the activity in a section and returns when it started.
func (c *cluster) describe(s *section) (string, time.Time) {
	build, building := c.imageBuildOf(s)
	switch {
	case !s.observed:
		return "unknown", time.Time{}
	case !s.pending:
		return c.describeDone(s), time.Time{}
	case s.controlPlane && s.failing:
		return c.describeFailing(s)
	case len(s.parts) > 0:
		return s.describeParts()
	case s.state == updatev1beta1.StateStuck && s.stalled:
		return "no progress", s.lastChange
	case s.active.Status == metav1.ConditionFalse:
		return "paused" + slotsText(s, ", then "), time.Time{}
	case building:
		return "OS image is being built", build.Start
	case s.pool != nil && !s.isConfigPool() && s.updating > 0:
		// The sections of the MachineConfigPools name the nodes.
		return fmt.Sprintf("%d being updated", s.updating), time.Time{}
	case c.controlPlane().state == updatev1beta1.StateStuck:
		return "pending", time.Time{}
	case s.controlPlane:
		return "in progress", time.Time{}
	}
	return "pending" + slotsText(s, ", "), time.Time{}
}

// imageBuildOf returns the build of the OS image that the section's nodes wait for.
func (c *cluster) imageBuildOf(s *section) (clusterstate.ImageBuild, bool) {
	rollout := c.rolloutOf(s)
	if rollout == nil {
		return clusterstate.ImageBuild{}, false
	}
	return c.in.Facts.ImageBuildOf(rollout)
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

// describeFailing names the failing operators and counts the waiting ones.
func (c *cluster) describeFailing(s *section) (string, time.Time) {
	names := c.failingOperators(s)
	waiting := s.total - s.updated - int32(min(len(names), maxParts))
	switch {
	case len(names) == 0:
		return "failing", time.Time{}
	case waiting > 0:
		return clean(fmt.Sprintf("%s failing; %d waiting", text.JoinNames(names), waiting)), time.Time{}
	}
	return clean(text.JoinNames(names) + " failing"), time.Time{}
}

// describeParts names the parts by phase, the oldest first.
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
	if parts[0].unknown {
		return joinClauses(described), time.Time{}
	}
	return joinClauses(described), parts[0].lastChange
}

func slotsText(s *section, before string) string {
	if s.slots == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d at a time", before, s.slots)
}

// slotsOf returns how many nodes of a pool may be unavailable at a time, or 0 if this is unknown.
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
