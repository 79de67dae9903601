// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// stoppedText is the minimum width of causes if the rollout has stopped.
const stoppedText = 43

// Status returns the status screen.
func (p *Printer) Status(s *Snapshot) string {
	v := s.Verdict()
	l := &lines{p.heading(fmt.Sprintf("%s: upgrade to %s   %s", s.Upgrade.Name, target(s.Upgrade), v.Text), s.Now)}
	l.addf("")
	p.progress(l, s, &v)
	if !v.Stopped {
		p.slots(l, s)
	}
	if rows := append(causeRows(s), goneRows(s)...); len(rows) > 0 {
		width := stoppedText
		if !v.Stopped {
			l.addf("")
			width = 0
		}
		digits := 0
		for i := range rows {
			digits = max(digits, len(grouped(rows[i].count)))
		}
		p.table(l, func(r *row) string { return fmt.Sprintf("  %-7s %*s  ", r.label, digits, grouped(r.count)) }, rows, width)
	}
	if v.Detail != "" || v.Verb != "" {
		l.addf("")
	}
	if v.Detail != "" {
		l.addf("%s", text.Sanitize(v.Detail, text.MaxReason))
	}
	if v.Verb != "" {
		l.addf("%s%s", v.Advice, p.Command(v.Verb))
	}
	return l.String()
}

// part is a line about the canaries or a group.
type part struct {
	label    string
	counters fleetv1beta1.ClustersSummary
	text     string
}

// progress adds a line for the canaries and each group.
func (p *Printer) progress(l *lines, s *Snapshot, v *Verdict) {
	parts := parts(s, v)
	label, digits := 0, 0
	for i := range parts {
		label = max(label, len(parts[i].label))
		digits = max(digits, len(grouped(int(parts[i].counters.Total))))
	}
	for i := range parts {
		c := &parts[i].counters
		l.addf("  %-*s   %*s of %-*s  %s", label, parts[i].label, digits, grouped(int(c.Complete)), digits, grouped(int(c.Total)), parts[i].text)
	}
}

// parts returns the canaries and the groups in order.
func parts(s *Snapshot, v *Verdict) []part {
	published := &s.Upgrade.Status
	var parts []part
	if c := published.CanaryClustersSummery; c != nil && c.Total > 0 {
		parts = append(parts, part{label: "canaries", counters: *c})
	}
	for i := range published.Groups {
		g := &published.Groups[i]
		parts = append(parts, part{label: "group " + strconv.Itoa(int(g.Index)), counters: g.ClustersSummary})
	}
	perGroup := s.Upgrade.Spec.UpgradeStrategy.RolloutType == fleetv1beta1.RolloutProgressivePerGroup
	waitsFor := ""
	for i := range parts {
		c := &parts[i].counters
		parts[i].text = describe(c)
		if c.Pending == c.Total && c.Total > 0 {
			parts[i].text = "not started"
			if waitsFor != "" && v.State == Progressing {
				parts[i].text = "waits for " + waitsFor
			}
		}
		finished := c.Ended() || c.Total == 0
		if waitsFor == "" && !finished && (perGroup || parts[i].label == "canaries") {
			waitsFor = strings.Replace(parts[i].label, "canaries", "the canaries", 1)
		}
	}
	return parts
}

// describe describes the counters after the number of complete clusters.
func describe(c *fleetv1beta1.ClustersSummary) string {
	words := []string{"complete"}
	for _, state := range []struct {
		count int32
		name  string
	}{{c.InFlight(), "in flight"}, {c.Finishing, "finishing"}, {c.Failed, "failed"}, {c.Pending, "pending"}} {
		if state.count > 0 {
			words = append(words, grouped(int(state.count))+" "+state.name)
		}
	}
	return strings.Join(words, ", ")
}

// slots adds the line about slots, failures, and the remaining time.
func (p *Printer) slots(l *lines, s *Snapshot) {
	if s.Unreadable != nil {
		l.addf("  slots and time left are unknown: %s", text.Excerpt(s.Unreadable.Error()))
		return
	}
	slots, failures := s.usage()
	left := s.left()
	if left != "" {
		left = "   left " + left
	}
	l.addf("  slots %s   failures %s%s", slots, failures, left)
}

// usage returns the slots in use and the failures, with their limits.
func (s *Snapshot) usage() (slots, failures string) {
	d := &s.Decision
	slots, failures = grouped(d.InUse)+" in use", grouped(d.Failures)
	if d.Slots != rollout.Unlimited {
		slots = grouped(d.InUse) + "/" + grouped(d.Slots)
	}
	if d.Tolerated != rollout.Unlimited {
		failures += " of " + grouped(d.Tolerated)
	}
	return slots, failures
}

// left returns the remaining time and its basis, or "" if no clusters are left.
func (s *Snapshot) left() string {
	c := s.Upgrade.Status.ClustersSummery
	if c == nil || c.Ended() {
		return ""
	}
	e, known := s.estimate()
	if !known {
		return fmt.Sprintf("unknown (%s done)", grouped(e.Done))
	}
	low, high := roughly(e.Low, false), roughly(e.High, true)
	span := low + " to " + high
	if strings.HasPrefix(low, "<") {
		span = "up to " + high
	}
	if s.Plan.Window != nil {
		span += " of open windows"
	}
	return fmt.Sprintf("%s (%s done, median %s)", span, grouped(e.Done), roughly(e.Median, false))
}

// causeRows returns the causes: failures first, followed by clusters without progress and clusters that
// cannot start.
func causeRows(s *Snapshot) []row {
	causes := s.Upgrade.Status.Causes
	labels := map[fleetv1beta1.CauseType]string{
		fleetv1beta1.CauseFailed: "FAILED", fleetv1beta1.CauseStalled: "SLOW", fleetv1beta1.CauseBlocked: "BLOCKED",
	}
	rows := make([]row, 0, len(causes))
	for i := range causes {
		c := &causes[i]
		r := row{label: labels[c.Type], count: int(c.Count), text: c.Message, names: c.Clusters}
		switch {
		case c.Message == "":
			r.text = c.Reason
		case c.Type == fleetv1beta1.CauseFailed:
			r.text = c.Reason + ": " + c.Message
		case c.Type == fleetv1beta1.CauseStalled:
			r.text = s.slow(c)
		}
		rows = append(rows, r)
	}
	return rows
}

// goneRows returns the failures of clusters that have left the hub and of clusters that a user has dismissed,
// with the reason.
func goneRows(s *Snapshot) []row {
	published := &s.Upgrade.Status
	var rows []row
	failed, canaries := s.gone()
	if failed > 0 {
		what := "left the hub before the end"
		if canaries > 0 {
			what = fmt.Sprintf("%s (canaries: %d)", what, canaries)
		}
		rows = append(rows, row{label: "GONE", count: failed, text: what})
	}
	for i := range published.ForgottenFailures {
		forgotten := &published.ForgottenFailures[i]
		rows = append(rows, row{label: "IGNORED", count: 1, text: "its failure does not count: " + forgotten.Reason, names: []string{forgotten.Cluster}})
	}
	return rows
}

// waitingOn matches what the cluster version operator waits for, at the end of its message.
var waitingOn = regexp.MustCompile(`waiting (?:up to \d+ minutes )?on (\S.*)$`)

// slow says how long the first cluster of a cause has made no progress and what it waits for. Steps that do
// not wait for the platform stall for other reasons.
func (s *Snapshot) slow(c *fleetv1beta1.Cause) string {
	for i := range s.Members {
		m := &s.Members[i]
		stalled := m.Stalled()
		if m.Name != c.Clusters[0] || stalled == nil || stalled.Reason != fleetv1alpha1.StepClusterUpgraded {
			continue
		}
		what := c.Message
		if found := waitingOn.FindStringSubmatch(what); found != nil {
			what = found[1]
		}
		since := stalled.LastTransitionTime.Add(-delivery.Timeout(m.Run.Spec.Timeouts.Stall, fleetv1beta1.DefaultStallTimeout))
		return fmt.Sprintf("no progress for %s: %s", roughly(s.Now.Sub(since), false), what)
	}
	return c.Message
}
