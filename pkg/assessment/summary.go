// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// summarize explains the state in one clause and says when a waiting update resumes.
func (c *cluster) summarize(out *updatev1beta1.Assessment) {
	switch out.State {
	case updatev1beta1.StateUnknown:
		out.Summary = c.summarizeUnknown()
	case updatev1beta1.StateStuck:
		var since time.Time
		out.Summary, since = c.stuckSummary(out.Causes)
		out.SummarySince = timePtr(since)
		out.ActionRequired = true
	case updatev1beta1.StateWaiting:
		c.summarizeWait(out)
	case updatev1beta1.StateIdle, updatev1beta1.StateProgressing:
	}
}

// stuckSummary names what is stuck and returns since when.
func (c *cluster) stuckSummary(causes []updatev1beta1.Cause) (string, time.Time) {
	first := ""
	if len(causes) > 0 {
		first = causes[0].Section
	}
	at := slices.IndexFunc(c.sections, func(s *section) bool { return s.state == updatev1beta1.StateStuck && s.name == first })
	if at < 0 {
		at = slices.IndexFunc(c.sections, func(s *section) bool { return s.state == updatev1beta1.StateStuck })
	}
	s := c.sections[at]
	if s.failing {
		if names := c.failingOperators(s); len(names) > 0 {
			return failing(names), c.failingSince(s)
		}
		return "The cluster version operator has been failing", s.failingSince
	}
	if len(s.stuck) > 0 {
		since := c.changeOf(s, s.stuck[0])
		if s.controlPlane {
			return "Operator " + s.stuck[0].name + " has made no progress", since
		}
		return s.title() + " has made no progress", since
	}
	if s.stalled {
		return s.title() + " has made no progress", s.lastChange
	}
	for i := range causes {
		if causes[i].Section == s.name && len(causes[i].Chain) > 0 {
			return bounded(upperFirst(causes[i].Chain[0].Message), maxText), causes[i].Since.Time
		}
	}
	return s.title() + " is blocked", time.Time{}
}

// title returns the section's name for the beginning of a sentence.
func (s *section) title() string {
	switch {
	case s.controlPlane:
		return "The control plane"
	case s.pool != nil && s.pool.Kind == "":
		return "The group of nodes without a pool"
	}
	return "Pool " + s.name
}

func (s *section) lowerTitle() string { return strings.ToLower(s.title()[:1]) + s.title()[1:] }

// failingOperators returns the operators that the cluster version operator names as the reason why it is
// failing. If it names none, the result is the operators with an error.
func (c *cluster) failingOperators(s *section) []string {
	var named, severely []string
	c.eachOperatorInsight(s, func(i insight, name string) {
		if c.in.Facts.Version.WaitsFor(name) {
			named = append(named, name)
		}
		if severe(i) {
			severely = append(severely, name)
		}
	})
	if len(named) == 0 {
		named = severely
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// eachOperatorInsight calls the function for each warning and error about an operator.
func (c *cluster) eachOperatorInsight(s *section, with func(i insight, name string)) {
	for _, i := range s.insights {
		if i.informer != checks.InformerControlPlane || i.Impact.Level.Rank() < updatev1beta1.LevelWarning.Rank() {
			continue
		}
		for _, r := range i.Scope.Resources {
			if r.Kind == kindOperator {
				with(i, bounded(r.Name, maxName))
			}
		}
	}
}

func failing(names []string) string {
	if len(names) == 1 {
		return "Operator " + names[0] + " has been failing"
	}
	return clean("Operators " + text.JoinNames(names) + " have been failing")
}

func (c *cluster) failingSince(s *section) time.Time {
	var since time.Time
	names := c.failingOperators(s)
	c.eachOperatorInsight(s, func(i insight, name string) {
		at := i.FirstObservedTime.Time
		if slices.Contains(names, name) && plausible(at, c.now) {
			since = earlier(since, at)
		}
	})
	return since
}

// summarizeWait says what is waiting, for what, and until when. A pause without an end lasts until a user
// ends it.
func (c *cluster) summarizeWait(out *updatev1beta1.Assessment) {
	if u := c.waitingUpgrade(); u != nil {
		c.summarizeUpgrade(out, u)
		return
	}
	var windows, paused []*section
	var forced *section
	for _, s := range c.sections {
		switch {
		case s.state != updatev1beta1.StateWaiting || s.behind || s.master && !s.printed():
		case s.active.Status != metav1.ConditionFalse:
			forced = cmp.Or(forced, s)
			c.resumeAt(out, s, s.forcedAt)
		case s.active.Reason == updatev1beta1.ReasonAwaitingWindow:
			windows = append(windows, s)
			c.resumeAt(out, s, c.resumeOf(s))
		default:
			paused = append(paused, s)
		}
	}
	out.ActionRequired = len(paused) > 0
	switch {
	case len(windows) > 0:
		out.Summary = titles(windows, "waits for its window", "wait for their windows")
	case len(paused) > 0:
		out.Summary = titles(paused, "is paused", "are paused")
	case forced != nil:
		out.Summary = forced.title() + " waits until the pods are forced off its node"
	default:
		out.Summary = "The update waits"
	}
}

func titles(sections []*section, one, many string) string {
	if len(sections) == 1 {
		return sections[0].title() + " " + one
	}
	var names []string
	for _, s := range sections {
		if s.controlPlane {
			return s.title() + " " + one // together with all pools
		}
		names = append(names, s.name)
	}
	return clean("Pools " + text.JoinNames(names) + " " + many)
}

// resumeAt records the time when a section resumes if it is the earliest.
func (c *cluster) resumeAt(out *updatev1beta1.Assessment, s *section, at time.Time) {
	if at.IsZero() || out.Resumes != nil && !at.Before(out.Resumes.Time.Time) {
		return
	}
	out.Resumes = &updatev1beta1.ScheduledTime{Time: published(at), By: c.resumedBy(s)}
}

// resumeOf returns when a section that waits for its window resumes, or zero if this is unknown. A delayed
// pool is released by the UpgradeJob that delays it.
func (c *cluster) resumeOf(s *section) time.Time {
	if at, found := c.in.Resumes[refOf(s.pool)]; found {
		return at
	}
	for i := range c.in.Facts.Pools {
		if p := &c.in.Facts.Pools[i]; s.pool != nil && s.pool.Kind == kindPool && p.Name == s.name && p.Mark != nil {
			return p.Mark.ReleaseAfter
		}
	}
	return time.Time{}
}

// resumedBy returns the object that makes a section resume: the upgrade that delays or suspends it, or
// otherwise the object with the window.
func (c *cluster) resumedBy(s *section) *updatev1beta1.ResourceReference {
	for i := range c.in.Facts.Upgrades {
		u := &c.in.Facts.Upgrades[i]
		if u.InProgress() && (s.controlPlane || slices.ContainsFunc(u.Pools, func(p checks.UpgradePool) bool { return p.Name == s.name })) {
			return upgradeRef(u)
		}
	}
	if s.pool != nil {
		return s.pool
	}
	o, apiVersion := s.object()
	return &updatev1beta1.ResourceReference{APIVersion: apiVersion, Kind: o.kind, Name: o.name}
}

func upgradeRef(u *checks.Upgrade) *updatev1beta1.ResourceReference {
	return boundedRef(u.APIVersion, u.Resource)
}

func boundedRef(apiVersion string, of checks.Resource) *updatev1beta1.ResourceReference {
	return &updatev1beta1.ResourceReference{
		APIVersion: bounded(apiVersion, 317), Kind: bounded(of.Kind, 63), Namespace: bounded(of.Namespace, 63), Name: bounded(of.Name, maxName),
	}
}

// next returns the next scheduled update of an idle cluster.
func (c *cluster) next(state updatev1beta1.AssessmentState) *updatev1beta1.ScheduledTime {
	if state != updatev1beta1.StateIdle {
		return nil
	}
	var next *updatev1beta1.ScheduledTime
	for i := range c.in.Facts.Upgrades {
		u := &c.in.Facts.Upgrades[i]
		at := u.Start
		if !at.After(c.now) {
			at = u.NextTime
		}
		if !at.After(c.now) || u.Paused || u.To == c.release || !scheduled(u.Phase) || next != nil && !at.Before(next.Time.Time) {
			continue
		}
		next = &updatev1beta1.ScheduledTime{Time: published(at), Release: bounded(u.To, maxRelease), By: upgradeRef(u)}
	}
	for i := range c.in.Facts.Schedules {
		s := &c.in.Facts.Schedules[i]
		if s.Start.After(c.now) && (next == nil || s.Start.Before(next.Time.Time)) { // its UpgradeJob, if there is one, has more detail
			next = &updatev1beta1.ScheduledTime{Time: published(s.Start), Release: bounded(s.To, maxRelease), By: boundedRef(s.APIVersion, s.Resource)}
		}
	}
	return next
}

func scheduled(phase history.Phase) bool {
	return phase == "" || phase == history.PhaseNew || phase == history.PhasePending
}

// lastKnown returns the last verdict based on complete data and when it was last confirmed.
func (c *cluster) lastKnown() *updatev1beta1.LastKnown {
	p := c.in.Previous
	switch {
	case p == nil:
		return nil
	case p.State == updatev1beta1.StateUnknown || p.State == "":
		return p.LastKnown
	}
	at := c.in.PreviousTime
	if at.IsZero() {
		at = p.Since.Time
	}
	if at.IsZero() {
		return nil
	}
	return &updatev1beta1.LastKnown{State: p.State, Text: lastKnownText(p), Time: published(at)}
}

func lastKnownText(p *updatev1beta1.Assessment) string {
	if p.State == updatev1beta1.StateIdle {
		return clean("Up to date at " + cmp.Or(p.Release, "an unknown release"))
	}
	line := fmt.Sprintf("Updating %s to %s", cmp.Or(p.FromRelease, "?"), cmp.Or(p.Release, "?"))
	for _, s := range p.Sections {
		if s.State == updatev1beta1.StateIdle || s.Total == 0 {
			continue
		}
		progress := fmt.Sprintf("%s, %d of %d %s", line, s.Updated, s.Total, s.Unit)
		if s.Unit == unitNodes {
			progress += " of pool " + s.Name
		}
		return clean(progress)
	}
	return clean(line)
}
