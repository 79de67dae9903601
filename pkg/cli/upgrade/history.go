// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// historyOptions holds the argument of the command history.
type historyOptions struct{ targetOptions }

// NewHistoryCommand returns the command that prints upgrades and their steps.
func NewHistoryCommand(p *session.Session) *cobra.Command {
	o := &historyOptions{targetOptions{Session: p, among: newestOf(kindUpgrade, kindJob)}}
	return targetCommand(p, o.among, &cobra.Command{
		Use: "history", Short: "Show the steps of upgrades, their durations, and earlier attempts", RunE: session.RunE(o),
		Long: "Show the upgrades of an object, newest first, with earlier attempts and a bar chart of when each step ran.\n\n" +
			"For a uc, the upgrades of its UpgradeJobs are shown. Without KIND/NAME, the newest upgrade is shown.\n\n" +
			"In the chart, = is a completed step, - a skipped step, x a failed step, and > a running step.",
	})
}

// Run prints the upgrades.
func (o *historyOptions) Run(ctx context.Context) error {
	cluster, target, err := o.find(ctx)
	if err != nil {
		return err
	}
	targets, err := withHistory(ctx, cluster, target)
	if err != nil {
		return err
	}
	var screens []string
	for _, t := range targets {
		screens = append(screens, historyScreen(o.Session, t, cluster.Clock.Now()))
	}
	if len(screens) == 0 {
		screens = []string{fmt.Sprintf("%s has not created an UpgradeJob yet.\n", target)}
	}
	_, err = fmt.Fprint(o.Streams.Out, strings.Join(screens, "\n"))
	return err
}

// withHistory returns the target itself or, for a schedule, its UpgradeJobs, newest first.
func withHistory(ctx context.Context, cluster *session.Cluster, target upgradeTarget) ([]upgradeTarget, error) {
	if target.kind != kindSchedule {
		return []upgradeTarget{target}, nil
	}
	jobs, err := listUpgrades(ctx, cluster, kindJob, target.object.GetNamespace())
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(job upgradeTarget) bool { return !isOwnedBy(job.job.OwnerReferences, target.object.GetUID()) })
	slices.SortFunc(jobs, func(a, b upgradeTarget) int {
		return cmp.Or(-strings.Compare(string(a.job.Spec.StartAfter), string(b.job.Spec.StartAfter)), strings.Compare(a.job.Name, b.job.Name))
	})
	return jobs, nil
}

func isOwnedBy(owners []metav1.OwnerReference, uid types.UID) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// historyScreen returns the history of an upgrade.
func historyScreen(p *session.Session, target upgradeTarget, now time.Time) string {
	l := &screen.Layout{Width: p.Terminal.Columns()}
	l.Hang("", screen.Clean(fmt.Sprintf("%s in namespace %s", target, target.object.GetNamespace())))
	if len(target.history()) == 0 {
		l.Hang("", cmp.Or(screen.Clean(target.progress()), "There is no record of an upgrade yet."))
	}
	for _, record := range target.history() {
		l.Hang("", "")
		recordScreen(l, record, now)
		for _, previous := range record.PreviousAttempts {
			l.Hang("  ", screen.Clean(previousText(previous, now)))
		}
	}
	return l.String()
}

// recordScreen adds an attempt: a headline and a row for each step.
func recordScreen(l *screen.Layout, record history.Record, now time.Time) {
	versions := record.Version
	if record.PrecedingVersion != "" {
		versions = record.PrecedingVersion + " to " + record.Version
	}
	head := fmt.Sprintf("%s: %s, attempt %d", cmp.Or(versions, "hooks only"), cmp.Or(record.Phase, history.PhaseNew), max(record.Attempt, 1))
	if record.StartTime != nil {
		head += fmt.Sprintf(", from %s, %s", screen.Date(record.StartTime.Time), screen.Elapsed(record.StartTime.Time, orNow(record.CompleteTime, now)))
	}
	l.Hang("", screen.Clean(head))
	if message := screen.Clean(record.Message); message != "" {
		l.Hang("  ", message)
	}
	if record.StartTime == nil {
		return
	}
	chart := newChart(record, l.Width, now)
	for _, step := range record.Conditions {
		l.Lines = append(l.Lines, chart.row(step))
		if class := engine.Classify(step); class != engine.ClassDone && class != engine.ClassSkipped {
			l.Hang(screen.Blank(4), screen.Clean(step.Message))
		}
	}
}

// previousText describes an earlier attempt in one line.
func previousText(previous history.PreviousAttempt, now time.Time) string {
	text := fmt.Sprintf("attempt %d: %s", previous.Attempt, previous.Phase)
	if previous.FailedStep != "" {
		text += " at " + previous.FailedStep
	}
	if previous.StartTime != nil {
		text += ", from " + screen.Date(previous.StartTime.Time) + ", " + screen.Elapsed(previous.StartTime.Time, orNow(previous.CompleteTime, now))
	}
	if previous.Message != "" {
		text += ": " + previous.Message
	}
	return text
}

func orNow(at *metav1.Time, now time.Time) time.Time {
	if at == nil {
		return now
	}
	return at.Time
}

const (
	// durationWidth is the width of the duration column in a chart.
	durationWidth = 7
	// minBars is the minimum width of the bars in a chart.
	minBars = 10
)

// chart draws the steps of an attempt as bars on a common time axis.
type chart struct {
	names, bars int // widths
	start, end  time.Time
	now         time.Time
}

func newChart(record history.Record, width int, now time.Time) chart {
	c := chart{start: record.StartTime.Time, end: orNow(record.CompleteTime, now), now: now}
	for _, step := range record.Conditions {
		c.names = max(c.names, screen.Columns(screen.Clean(step.Type)))
		if step.CompleteTime != nil && step.CompleteTime.After(c.end) {
			c.end = step.CompleteTime.Time
		}
	}
	c.bars = max(minBars, width-2-c.names-screen.ColumnGap-durationWidth-screen.ColumnGap-2)
	return c
}

// row returns the row of a step: name, duration, and bar.
func (c chart) row(step history.StepCondition) string {
	took, bar := "", screen.Blank(c.bars)
	if step.StartTime != nil {
		end := orNow(step.CompleteTime, c.now)
		took = screen.Elapsed(step.StartTime.Time, end)
		from, to := c.column(step.StartTime.Time), c.column(end)
		from = min(from, c.bars-1)
		to = min(max(to, from+1), c.bars)
		bar = screen.Blank(from) + strings.Repeat(mark(step), to-from) + screen.Blank(c.bars-to)
	}
	return "  " + screen.PadRight(screen.Clean(step.Type), c.names+screen.ColumnGap) + screen.PadRight(took, durationWidth+screen.ColumnGap) + "|" + bar + "|"
}

// column returns the column of a time.
func (c chart) column(at time.Time) int {
	length := c.end.Sub(c.start)
	if length <= 0 {
		return 0
	}
	return min(max(int(float64(c.bars)*float64(at.Sub(c.start))/float64(length)), 0), c.bars)
}

// mark returns the character used for the bar of a step.
func mark(step history.StepCondition) string {
	switch engine.Classify(step) {
	case engine.ClassFailed:
		return "x"
	case engine.ClassSkipped:
		return "-"
	case engine.ClassDone:
		return "="
	default:
		return ">"
	}
}
