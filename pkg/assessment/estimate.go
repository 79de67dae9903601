// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxPast limits the number of past updates that an estimate is derived from.
	maxPast = 5
	// outlier is the multiple of the median above which a past update is ignored.
	outlier = 3
	// minSamples is the minimum number of updated nodes for an estimate based on the current update.
	minSamples = 3
	// hysteresis is how much the earliest end must move before it is published. It moves with the clock until
	// a pool starts, and each change is a write.
	hysteresis = time.Minute
)

// span is a range of durations.
type span struct{ min, max time.Duration }

// times returns how long n of them take in sequence.
func (s span) times(n int) span {
	return span{time.Duration(int64(n) * int64(s.min)), time.Duration(int64(n) * int64(s.max))}
}

// spanOf returns the range of the durations, or zero if there are none.
func spanOf(some []time.Duration) span {
	if len(some) == 0 {
		return span{}
	}
	return span{slices.Min(some), slices.Max(some)}
}

// sectionEstimate estimates the remaining time of a section.
type sectionEstimate struct {
	name string
	// begun is set if left counts from base. If not, left counts from the start of the section.
	begun bool
	base  time.Time
	left  span
	// taken is the part of left that the nodes in progress have already used, assuming that nothing stops
	// them.
	taken span
	// resumes is when a paused section resumes, or zero if it is not paused.
	resumes time.Time
	// basis describes what left is derived from. unknown explains why there is no estimate.
	basis, unknown string
}

// estimate estimates the remaining time of the update. It returns nil if no update is in progress. An
// estimate without an end keeps the latest end published before, so the next estimate can be compared with
// it.
func (c *cluster) estimate(out updatev1beta1.Assessment) *updatev1beta1.Estimate {
	previous := c.previousEstimate()
	if out.State == updatev1beta1.StateIdle || !c.anyPending() && previous == nil {
		return nil
	}
	e := c.newEstimate(out)
	if e.Latest == nil && previous != nil {
		e.Latest, e.Extended = previous.Latest, previous.Extended
	}
	return e
}

// newEstimate returns an estimate suited to the state of the update.
func (c *cluster) newEstimate(out updatev1beta1.Assessment) *updatev1beta1.Estimate {
	sections := c.estimateSections(out)
	e := &updatev1beta1.Estimate{From: updatev1beta1.EstimateFromNow}
	switch {
	case out.State == updatev1beta1.StateUnknown:
		e.Reason = "data is missing"
	case out.State == updatev1beta1.StateStuck:
		e.From, e.Reason = updatev1beta1.EstimateFromRemedy, "the update is stuck"
		c.countFrom(e, sections, c.now)
	case out.State == updatev1beta1.StateWaiting && out.ActionRequired:
		e.From, e.Reason = updatev1beta1.EstimateFromRemedy, "the update is paused without an end"
		c.countFrom(e, sections, c.now)
	case out.State == updatev1beta1.StateWaiting:
		e.From = updatev1beta1.EstimateFromResumption
		from := c.now
		if out.Resumes != nil {
			from = out.Resumes.Time.Time
		}
		c.countFrom(e, sections, from)
		if e.MaxSeconds == 0 {
			e.Reason = firstUnknown(sections)
		}
	default:
		c.countNow(e, sections)
	}
	return e
}

// estimateSections estimates each section. The time when a section resumes may be unknown only if the
// estimate counts from that time.
func (c *cluster) estimateSections(out updatev1beta1.Assessment) []sectionEstimate {
	var sections []sectionEstimate
	for _, s := range c.sections {
		var e sectionEstimate
		switch {
		case !s.pending || s.master || !s.controlPlane && s.total == 0:
			continue
		case !s.controlPlane && !s.isConfigPool() && len(c.in.Facts.Pools) > 0:
			continue // covered by the MachineConfigPools of its nodes
		case s.controlPlane:
			e = c.estimateControlPlane(s)
		default:
			e = c.estimatePool(s)
		}
		if s.active.Status == metav1.ConditionFalse {
			at := c.resumeOf(s)
			if !at.IsZero() {
				e.resumes = at
			} else if e.unknown == "" && (out.State != updatev1beta1.StateWaiting || out.Resumes != nil) {
				e.unknown = "it is not known when " + s.lowerTitle() + " resumes"
			}
		}
		sections = append(sections, e)
	}
	return sections
}

// waits returns the minimum time from the given time until the section resumes.
func (s *sectionEstimate) waits(from time.Time) time.Duration {
	if s.resumes.IsZero() {
		return 0
	}
	return max(s.resumes.Sub(from), 0)
}

// firstUnknown explains why the first section without an estimate has none.
func firstUnknown(sections []sectionEstimate) string {
	for _, s := range sections {
		if s.unknown != "" {
			return s.unknown
		}
	}
	return ""
}

// countFrom fills in an estimate that counts from when the update continues. The control plane comes first,
// followed by all pools in parallel, each as soon as it resumes. If the range of any section is unknown, the
// estimate has no range. For a remedy, whose time is unknown, from is the earliest possible time.
func (c *cluster) countFrom(e *updatev1beta1.Estimate, sections []sectionEstimate, from time.Time) {
	var plane, all span
	known := len(sections) > 0
	for i := range sections {
		s := &sections[i]
		if s.begun && s.name == controlPlane {
			// The remaining time is the time that past updates took from the same point.
			s.left = spanOf(c.leftByOperators())
			if s.left.max == 0 && s.unknown == "" {
				s.unknown = "it is not known how far the update was"
			}
		}
		known = known && s.unknown == ""
		e.Sections = append(e.Sections, updatev1beta1.SectionEstimate{
			Name: s.name, MinSeconds: int64(s.left.min / time.Second), MaxSeconds: int64(s.left.max / time.Second), Basis: s.basis, Reason: s.unknown,
		})
		waits := span{s.waits(from), max(s.waits(from), plane.max)}
		if e.From == updatev1beta1.EstimateFromRemedy {
			waits.min = 0
		}
		ends := span{waits.min + s.left.min, waits.max + s.left.max}
		if s.name == controlPlane {
			plane = ends
		}
		all.min, all.max = max(all.min, ends.min), max(all.max, ends.max)
	}
	if known {
		e.MinSeconds, e.MaxSeconds = int64(all.min/time.Second), int64(all.max/time.Second)
	}
}

// countNow fills in an estimate that counts from now. A pool that has not started will start between now and
// the latest end of the control plane. A paused section starts no earlier than it resumes.
func (c *cluster) countNow(e *updatev1beta1.Estimate, sections []sectionEstimate) {
	if e.Reason = firstUnknown(sections); e.Reason != "" || len(sections) == 0 {
		c.countFrom(e, sections, c.now)
		e.MinSeconds, e.MaxSeconds = 0, 0
		return
	}
	earliest, latest, planeLatest := c.now, time.Time{}, c.now
	for i := range sections {
		s := &sections[i]
		part := updatev1beta1.SectionEstimate{Name: s.name, Basis: s.basis}
		waits := s.waits(c.now)
		first, last := c.now.Add(waits+s.left.min), c.now.Add(max(planeLatest.Sub(c.now), waits)+s.left.max)
		if s.begun {
			first, last = s.base.Add(max(s.left.min-s.taken.min, 0)), s.base.Add(max(s.left.max-s.taken.max, 0))
			first, last = c.steady(s.name, first.Add(waits), last.Add(waits))
			part.Earliest, part.Latest = timePtr(first), timePtr(last)
		} else {
			part.MinSeconds, part.MaxSeconds = int64(s.left.min/time.Second), int64(s.left.max/time.Second)
		}
		if s.name == controlPlane {
			planeLatest = last
		}
		earliest, latest = later(earliest, first), later(latest, last)
		e.Sections = append(e.Sections, part)
	}
	c.settle(e, sections, earliest, latest)
}

// steady returns the published times of a section unless they have moved by more than the hysteresis.
func (c *cluster) steady(name string, first, last time.Time) (earliest, latest time.Time) {
	previous := c.previousEstimate()
	if previous == nil {
		return first, last
	}
	for i := range previous.Sections {
		s := &previous.Sections[i]
		if s.Name != name || s.Earliest == nil || s.Latest == nil {
			continue
		}
		if first.Sub(s.Earliest.Time).Abs() < hysteresis && last.Sub(s.Latest.Time).Abs() < hysteresis {
			return s.Earliest.Time, s.Latest.Time
		}
	}
	return first, last
}

// previousEstimate returns the last estimate of this update, or nil.
func (c *cluster) previousEstimate() *updatev1beta1.Estimate {
	if !c.sameUpdate || c.in.Previous == nil {
		return nil
	}
	return c.in.Previous.Estimate
}

// settle publishes the range. The latest end moves to a later time only for a reason, and the reason is
// published too. The earliest end moves in steps and never past the latest end.
func (c *cluster) settle(e *updatev1beta1.Estimate, sections []sectionEstimate, earliest, latest time.Time) {
	previous := c.previousEstimate()
	if previous != nil && previous.Latest != nil {
		before := previous.Latest.Time
		e.Extended = previous.Extended
		if latest.After(before) {
			if reason := cmp.Or(c.laterReason(), pausedBeyond(before, sections)); reason != "" {
				e.Extended = reason
			} else {
				latest = before
			}
		} else if before.Sub(latest) < hysteresis {
			latest = before
		}
	}
	if at, why := c.longestEstimatedFinish(); at.After(latest) {
		latest, e.Extended = at, why
	}
	if earliest.After(latest) {
		earliest = latest
	}
	if previous != nil && previous.Earliest != nil && !previous.Earliest.After(latest) && earliest.Sub(previous.Earliest.Time).Abs() < hysteresis {
		earliest = previous.Earliest.Time
	}
	e.Earliest, e.Latest = timePtr(earliest.Truncate(time.Second)), timePtr(latest.Truncate(time.Second))
}

// laterReason returns the reason why the end may be later than published, or "" if there is none.
func (c *cluster) laterReason() string {
	last := c.in.Previous
	state := last.State
	if state == updatev1beta1.StateUnknown && last.LastKnown != nil {
		state = last.LastKnown.State
	}
	switch state {
	case updatev1beta1.StateStuck:
		return "the update was stuck"
	case updatev1beta1.StateWaiting:
		return "the update waited"
	default:
	}
	if e := last.Estimate; last.State == updatev1beta1.StateProgressing && e.Earliest == nil && e.Reason != "" {
		return clean("the end was unknown: " + e.Reason)
	}
	for _, s := range c.sections {
		switch {
		case s.master:
		case s.previous == nil:
			return s.lowerTitle() + " is new"
		case s.total > s.previous.Total:
			return fmt.Sprintf("%s has %d %s instead of %d", s.lowerTitle(), s.total, s.unit, s.previous.Total)
		case s.slots < s.previous.Slots && s.slots > 0:
			return fmt.Sprintf("%s updates %s at a time instead of %d", s.lowerTitle(), text.Plural(int(s.slots), "node", "nodes"), s.previous.Slots)
		default:
			if reason := c.slowNode(s); reason != "" {
				return reason
			}
		}
	}
	return ""
}

// pausedBeyond describes a section whose pause lasts beyond the published latest end, or returns "" if there
// is none.
func pausedBeyond(latest time.Time, sections []sectionEstimate) string {
	for i := range sections {
		if s := &sections[i]; s.resumes.After(latest) {
			return s.name + " is paused until " + s.resumes.UTC().Format("2006-01-02 15:04 UTC")
		}
	}
	return ""
}

// slowNode describes a node that took longer than the estimate assumed, or returns "" if there is none.
func (c *cluster) slowNode(s *section) string {
	for _, d := range s.done {
		assumed, known := c.perNode(s, len(s.done))
		if known && d.took > assumed.max {
			return clean(fmt.Sprintf("node %s took %s instead of %s to %s", d.name, minutes(d.took), minutes(assumed.min), minutes(assumed.max)))
		}
	}
	return ""
}

// estimateControlPlane estimates the duration from completed updates of this cluster. The earliest end also
// uses the times when operators were updated in observed past updates.
func (c *cluster) estimateControlPlane(s *section) sectionEstimate {
	e := sectionEstimate{name: s.name, begun: true, base: c.started}
	past := c.pastDurations()
	if len(past) == 0 || c.started.IsZero() {
		e.unknown = "no earlier update of this cluster is known"
		return e
	}
	e.left = spanOf(past)
	e.basis = fmt.Sprintf("%d earlier updates took %s to %s", len(past), minutes(e.left.min), minutes(e.left.max))
	if len(past) == 1 {
		e.basis = "1 earlier update took " + minutes(e.left.min)
		e.left = span{e.left.min * 3 / 4, e.left.max * 3 / 2}
	}
	if left := c.leftByOperators(); len(left) > 0 {
		ends := s.lastChange.Add(slices.Min(left)).Sub(c.started)
		e.left.min = min(max(ends, 0), e.left.max)
	}
	return e
}

// pastDurations returns the durations of up to five completed updates of the control plane, latest first. It
// prefers updates of the same kind and ignores the installation and updates that took more than three times
// the median.
func (c *cluster) pastDurations() []time.Duration {
	version := &c.in.Facts.Version
	var same, other []time.Duration
	for i := 1; i < len(version.Updates); i++ {
		took, kind := version.Updates[i].Duration(), version.UpdateKind(i)
		switch {
		case took <= 0 || kind == clusterstate.UpdateInstallation:
		case kind == version.UpdateKind(0):
			same = append(same, took)
		default:
			other = append(other, took)
		}
	}
	past := same
	if len(past) == 0 {
		past = other
	}
	past = past[:min(len(past), maxPast)]
	median := quantile(past, 0.5)
	return slices.DeleteFunc(slices.Clone(past), func(d time.Duration) bool { return d > outlier*median })
}

// leftByOperators returns the remaining time of each observed past update from the point when as many
// operators were updated as are now.
func (c *cluster) leftByOperators() []time.Duration {
	plane := c.controlPlane()
	var left []time.Duration
	for _, update := range c.past {
		took := update.CompletionTime.Sub(update.StartedTime.Time)
		if took <= 0 || len(update.Operators) == 0 || plane.updated <= 0 {
			continue
		}
		offsets := make([]int32, 0, len(update.Operators))
		for _, o := range update.Operators {
			offsets = append(offsets, o.Seconds)
		}
		slices.Sort(offsets)
		at := offsets[min(int(plane.updated), len(offsets))-1]
		left = append(left, max(took-time.Duration(at)*time.Second, 0))
	}
	return left
}

// estimatePool estimates the duration from the time per node and the number of nodes that can be updated in
// parallel.
func (c *cluster) estimatePool(s *section) sectionEstimate {
	e := sectionEstimate{name: s.name, begun: s.begun() && s.active.Status == metav1.ConditionTrue, base: c.now}
	perNode, known := c.perNode(s, 0)
	// An unavailable node takes up a slot even if no update is running on it.
	free := int(s.slots) - max(int(s.unavailable)-len(s.parts), 0)
	switch {
	case s.active.Reason == updatev1beta1.ReasonPaused && s.active.Status == metav1.ConditionFalse:
		e.unknown = "pool " + s.name + " is paused without an end"
	case !known:
		e.unknown = "no update of pool " + s.name + " was observed"
	case s.slots == 0:
		e.unknown = "it is not known how many nodes of pool " + s.name + " are updated at a time"
	case free <= 0:
		e.unknown = "too many nodes of pool " + s.name + " are not available"
	}
	if !known || s.slots == 0 || free <= 0 {
		return e
	}
	e.left = perNode.times((int(s.total-s.updated) + free - 1) / free)
	e.left.max += max(perNode.slowest-perNode.max, 0)
	e.taken = span{c.credit(s, free, perNode.min), c.credit(s, free, perNode.max)}
	e.basis = perNode.basis
	return e
}

// credit returns the time that the pool's current nodes have already used, averaged over the nodes that can
// be updated in parallel. A slow node counts no more than the expected time, because it may take even longer.
func (c *cluster) credit(s *section, free int, perNode time.Duration) time.Duration {
	var sum time.Duration
	for _, p := range s.parts {
		sum += min(max(c.now.Sub(p.started), 0), perNode)
	}
	return sum / time.Duration(max(free, len(s.parts), 1))
}

// nodeTime is the time that a node takes.
type nodeTime struct {
	span
	// slowest is the time of the slowest node in the last update if it took more than twice as long as most
	// nodes, and 0 otherwise.
	slowest time.Duration
	basis   string
}

// slowFactor is the factor that makes a node slow compared with most nodes.
const slowFactor = 2

// perNode returns the time that a node takes: the quartiles of this update, without the given number of last
// nodes, if at least three nodes remain, or else the quartiles of the last observed update. It allows for one
// node as slow as the slowest node of the last update, unless this update already had one.
func (c *cluster) perNode(s *section, without int) (nodeTime, bool) {
	last, known := c.lastNodeTime(s.name)
	n := len(s.nodeSeconds) - without
	if n < minSamples {
		return last, known
	}
	took := make([]time.Duration, 0, n)
	for _, sample := range s.nodeSeconds[:n] {
		took = append(took, time.Duration(sample)*time.Second)
	}
	per := nodeTime{span: span{quantile(took, 0.25), quantile(took, 0.75)}, slowest: last.slowest}
	if slices.Max(took) > slowFactor*per.max {
		per.slowest = 0
	}
	per.basis = fmt.Sprintf("%s to %s per node in this update", minutes(per.min), minutes(per.max))
	return per, true
}

// lastNodeTime returns the node time of a pool in the last observed update.
func (c *cluster) lastNodeTime(pool string) (nodeTime, bool) {
	for _, update := range c.past {
		for _, p := range update.Pools {
			if p.Name != pool || p.Nodes <= 0 || p.UpperSeconds <= 0 {
				continue
			}
			last := nodeTime{span: span{time.Duration(p.LowerSeconds) * time.Second, time.Duration(p.UpperSeconds) * time.Second}}
			last.basis = fmt.Sprintf("%s to %s per node in the last update", minutes(last.min), minutes(last.max))
			if slowest := time.Duration(p.LongestSeconds) * time.Second; slowest > slowFactor*last.max {
				last.slowest = slowest
				last.basis += ", the slowest " + minutes(slowest)
			}
			return last, true
		}
	}
	return nodeTime{}, false
}

// quantile returns a quantile of durations by linear interpolation, or 0 if there are none.
func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + time.Duration((at-float64(low))*float64(sorted[low+1]-sorted[low]))
}

// maxEstimate limits how much an insight may extend an estimate.
const maxEstimate = 24 * time.Hour

// longestEstimatedFinish returns the latest end announced by an insight of normal progress, and the insight's
// informer. Such insights can only extend the estimate.
func (c *cluster) longestEstimatedFinish() (time.Time, string) {
	var latest time.Time
	var why string
	for _, s := range c.sections {
		if !s.pending {
			continue
		}
		for _, i := range s.insights {
			at, known := i.Remediation.Finish(i.AcquisitionTime.Time)
			if known && at.After(latest) && at.After(c.now) && at.Sub(c.now) <= maxEstimate {
				latest = at
				why = clean(fmt.Sprintf("informer %s expects it: %s", i.informer, i.Impact.Summary))
			}
		}
	}
	return latest, why
}
