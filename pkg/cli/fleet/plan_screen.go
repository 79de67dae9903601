// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxGroups is the maximum number of group sizes in a plan.
const maxGroups = 6

// Forecast describes what an upgrade would do now.
type Forecast struct {
	// Canaries is the number of canaries. Groups lists the sizes of the groups in order.
	Canaries int
	Groups   []int
	// Hub is set if the hub's own cluster is included.
	Hub bool
	// Ready, Done, and Blocked count the clusters that would start, that need no upgrade, and that could not
	// be upgraded.
	Ready, Done, Blocked int
	// Slots is how many clusters are upgraded in parallel, or rollout.Unlimited.
	Slots int
	// Stop explains why no cluster would start. It is zero if at least one would.
	Stop rollout.Stop
	// Unchecked describes what the hub has not checked. It is empty if all clusters are checked.
	Unchecked string
	obstacles []row
}

// Forecast evaluates the plan as if it were neither a dry run nor paused. Clusters blocked in a dry run are
// taken from the published status.
func (s *Snapshot) Forecast() Forecast {
	plan := s.Plan
	plan.DryRun, plan.Paused = false, false
	decision := admission.Admit(plan, s.Members, s.Now)
	f := Forecast{Slots: decision.Slots, Stop: decision.Stopped, Unchecked: s.unchecked()}
	if r := f.Stop.Reason; r == fleetv1beta1.ReasonNoFreeSlot || r == fleetv1beta1.ReasonFinished || r == fleetv1beta1.ReasonHeld {
		f.Stop = rollout.Stop{} // progress, and clusters that are counted individually
	}
	last := -1
	local := map[string]*row{}
	for _, m := range s.counted() {
		switch {
		case m.Hub:
			f.Hub = true
		case m.IsCanary():
			f.Canaries++
		default:
			if m.Group != last {
				f.Groups, last = append(f.Groups, 0), m.Group
			}
			f.Groups[len(f.Groups)-1]++
		}
		s.classify(m, &f, local)
	}
	f.addObstacles(s.Upgrade.Status.Causes, local)
	return f
}

// classify counts a cluster as ready, done, or blocked. local collects obstacles by reason.
func (s *Snapshot) classify(m *admission.FleetMember, f *Forecast, local map[string]*row) {
	outcome := admission.Outcome(&s.Upgrade.Spec, s.Clusters[m.Name], m.IsCanary() || m.Run != nil)
	block := func(reason, message string) {
		f.Blocked++
		r := local[reason]
		if r == nil {
			r = &row{text: message}
			local[reason] = r
		}
		r.count++
		if len(r.names) < fleetv1beta1.MaxCauseClusters {
			r.names = append(r.names, m.Name)
		}
	}
	switch {
	case m.State == rollout.Complete, m.State == rollout.NotStarted && outcome != nil && outcome.State == fleetv1alpha1.StateComplete:
		f.Done++
	case m.State == rollout.Failed:
		reason := "Failed"
		if m.Run != nil {
			reason = cmp.Or(m.Run.Status.Reason, reason)
		}
		block(reason, reason)
	case m.State == rollout.NotStarted && outcome != nil:
		block(outcome.Reason, outcome.Reason)
	case m.State == rollout.NotStarted && m.Hold != "":
		block(cmp.Or(m.HoldReason, fleetv1beta1.ReasonHeld), m.Hold)
	default:
		f.Ready++
	}
}

// addObstacles adds the published obstacles of the dry run and sorts all obstacles. For the same reason, the
// larger count wins.
func (f *Forecast) addObstacles(causes []fleetv1beta1.Cause, local map[string]*row) {
	for i := range causes {
		c := &causes[i]
		if c.Type != fleetv1beta1.CauseBlocked {
			continue
		}
		known := 0
		if r := local[c.Reason]; r != nil {
			known = r.count
		}
		if more := int(c.Count) - known; more > 0 {
			local[c.Reason] = &row{count: int(c.Count), text: cmp.Or(c.Message, c.Reason), names: c.Clusters}
			f.Blocked += more
			f.Ready = max(0, f.Ready-more)
		}
	}
	for _, r := range local {
		f.obstacles = append(f.obstacles, *r)
	}
	slices.SortFunc(f.obstacles, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text))
	})
	if len(causes) == fleetv1beta1.MaxCauses && f.Unchecked == "" {
		f.Unchecked = "the hub lists the most frequent obstacles only; there may be others"
	}
}

// unchecked describes what the hub has not checked in a dry run. It returns "" if there is nothing.
func (s *Snapshot) unchecked() string {
	passed := s.condition(fleetv1beta1.ConditionPreflightPassed)
	switch {
	case !s.Upgrade.Spec.DryRun:
		return "the clusters are checked only while spec.dryRun is true"
	case !s.isCurrent(), passed.Type == "":
		return "the hub has not checked the clusters yet"
	case passed.Status == metav1.ConditionUnknown:
		return passed.Message
	case s.Upgrade.Spec.ClaimsOnly:
		return "only the claims of the clusters were read: see the condition PreflightPassed"
	}
	return ""
}

// State says what the plan needs.
func (f *Forecast) State(s *Snapshot) VerdictState {
	switch {
	case f.Blocked > 0 || !f.Stop.IsZero():
		return ActionRequired
	case s.Upgrade.Spec.DryRun && f.Unchecked != "":
		return Waiting
	}
	return Done
}

// order describes the order in words.
func (f *Forecast) order() string {
	var parts []string
	if f.Canaries > 0 {
		parts = append(parts, plural(f.Canaries, "canary", "canaries"))
	}
	switch n := len(f.Groups); {
	case n == 1 && f.Canaries > 0:
		parts = append(parts, "then "+plural(f.Groups[0], "other cluster", "other clusters"))
	case n == 1:
		parts = append(parts, plural(f.Groups[0], "cluster", "clusters"))
	case n > 1:
		then := ""
		if f.Canaries > 0 {
			then = "then "
		}
		if n > maxGroups {
			parts = append(parts, fmt.Sprintf("%s%d groups of %s to %s", then, n, grouped(slices.Min(f.Groups)), grouped(slices.Max(f.Groups))))
			break
		}
		sizes := make([]string, n)
		for i, size := range f.Groups {
			sizes[i] = grouped(size)
		}
		parts = append(parts, then+"groups of "+strings.Join(sizes, ", "))
	}
	if f.Hub {
		parts = append(parts, "the hub last")
	}
	if len(parts) == 0 {
		return "no cluster is selected"
	}
	atATime := "all at once"
	if f.Slots != rollout.Unlimited {
		atATime = grouped(f.Slots) + " at a time"
	}
	return strings.Join(parts, ", ") + "; " + atATime
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// Plan returns the screen for the plan.
func (p *Printer) Plan(s *Snapshot) string {
	f := s.Forecast()
	note := "nothing was written to any cluster"
	if s.Upgrade.Spec.DryRun {
		note = "dry run, " + note
	}
	l := &lines{fmt.Sprintf("%s: plan for %s   %s", s.Upgrade.Name, target(s.Upgrade), note)}
	l.addf("")
	l.addf("  ORDER    %s", f.order())
	width := max(5, len(grouped(max(f.Ready, f.Done, f.Blocked))))
	l.addf("  READY    %*s", width, grouped(f.Ready))
	if f.Done > 0 {
		l.addf("  DONE     %*s  at %s already", width, grouped(f.Done), target(s.Upgrade))
	}
	if f.Blocked > 0 {
		digits := len(grouped(f.obstacles[0].count))
		f.obstacles[0].label = fmt.Sprintf("  BLOCKED  %*s", width, grouped(f.Blocked))
		p.table(l, func(r *row) string {
			return fmt.Sprintf("%-*s  %*s  ", 11+width, r.label, digits, grouped(r.count))
		}, f.obstacles, 0)
	}
	if !f.Stop.IsZero() {
		l.addf("  STOPPED  %s", text.Sanitize(f.Stop.Message, text.MaxReason))
	}
	if f.Unchecked != "" {
		l.addf("  UNKNOWN  %s", text.Sanitize(f.Unchecked, text.MaxReason))
	}
	if s.Upgrade.Spec.DryRun && f.Unchecked == "" && f.Stop.IsZero() {
		l.addf("")
		l.addf("To run it: %s", p.Command("start"))
	}
	return l.String()
}

// Clusters returns a table of the clusters in admission order.
func Clusters(s *Snapshot, states []string) (header []string, rows [][]string) {
	header = []string{"CLUSTER", "STATE", "GROUP", "STEP", "REASON", "MESSAGE"}
	for _, m := range s.counted() {
		if len(states) == 0 || slices.Contains(states, string(m.State)) {
			c := clusterOf(m)
			rows = append(rows, []string{c.Name, c.State, c.Group, c.Step, c.Reason, c.Message})
		}
	}
	return header, rows
}

// clusterOf returns the row for a cluster.
func clusterOf(m *admission.FleetMember) report.Cluster {
	c := report.Cluster{Name: m.Name, State: string(m.State), Group: strconv.Itoa(m.Group + 1), Message: m.Hold, HasRun: m.Run != nil}
	switch {
	case m.Hub:
		c.Group = "hub"
	case m.IsCanary():
		c.Group = "canary"
	}
	if m.Hold != "" && m.State == rollout.NotStarted {
		c.Reason = fleetv1beta1.ReasonHeld
	}
	if run := m.Run; run != nil && m.State != rollout.NotStarted {
		c.Step, c.Reason, c.Message = stepOf(run), run.Status.Reason, run.Status.Message
		if run.Spec.Outcome != nil {
			c.Reason, c.Message = run.Spec.Outcome.Reason, run.Spec.Outcome.Message
		}
	}
	c.Tone = toneOfCluster(m)
	return c
}

func toneOfCluster(m *admission.FleetMember) report.Tone {
	switch {
	case m.State == rollout.Failed:
		return report.ToneFailed
	case m.Stalled() != nil:
		return report.ToneWarning
	case m.State == rollout.Complete:
		return report.ToneDone
	case m.InFlight():
		return report.ToneRunning
	}
	return report.ToneNone
}

// Runs returns the runs of clusters in the given states, in admission order. Without states, it returns all.
func Runs(s *Snapshot, states []string) *fleetv1alpha1.ClusterUpgradeRunList {
	list := &fleetv1alpha1.ClusterUpgradeRunList{}
	list.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterUpgradeRunList"))
	for _, m := range s.counted() {
		if m.Run == nil || len(states) > 0 && !slices.Contains(states, string(m.State)) {
			continue
		}
		run := *m.Run
		run.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterUpgradeRun"))
		list.Items = append(list.Items, run)
	}
	return list
}

// stepOf returns the current step of a run, or "".
func stepOf(run *fleetv1alpha1.ClusterUpgradeRun) string {
	for i := range run.Status.Conditions {
		if c := &run.Status.Conditions[i]; c.Type == fleetv1alpha1.ConditionProgressing && c.Status == metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}
