// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// CSS classes for states.
const (
	classDone    = "done"
	classRunning = "running"
	classSkipped = "skipped"
	classFailed  = "failed"
)

const (
	// ticks is the number of times shown on the axis.
	ticks = 5

	// minName and maxName limit the width of the name column, in characters. Longer names are wrapped.
	minName, maxName = 15, 36
)

// Row is a row of a chart.
type Row struct {
	Name string
	Bars []Bar
}

// BarKind is the kind of a bar, shown as a color and a word.
type BarKind string

// Kinds of bars for nodes and alerts. Steps use the classes of the engine.
const (
	KindCordoned  BarKind = "cordoned"
	KindRebooting BarKind = "rebooting"
	KindNotReady  BarKind = "not ready"
	KindEvents    BarKind = "seen in Events"
	KindWarning   BarKind = "warning"
	KindCritical  BarKind = "critical"
)

// kinds returns the kinds of bars in legend order, with their CSS classes.
func kinds() [][2]string {
	return [][2]string{
		{classDone, classDone},
		{classRunning, classRunning},
		{classSkipped, classSkipped},
		{classFailed, classFailed},
		{string(KindEvents), classRunning},
		{string(KindCordoned), "cordoned"},
		{string(KindRebooting), "rebooting"},
		{string(KindNotReady), classFailed},
		{string(KindWarning), "warning"},
		{string(KindCritical), classFailed},
	}
}

// Bar is a period in which something was true.
type Bar struct {
	Kind       BarKind
	Start, End time.Time
}

type tick struct {
	Left float64
	Text string
}

type chart struct {
	Title, Empty string
	Legend       [][2]string // words and their classes
	Rows         []row
	More         int
}

type row struct {
	Name, Took, Text string
	Bars             []bar
}

type bar struct {
	Kind, Class, Title string
	Left, Width        float64
}

// axis is the period shown in the charts.
type axis struct{ start, end time.Time }

func newAxis(r Report) axis {
	a := axis{orNow(r.Record.StartTime, r.Now), r.Now}
	if r.Record.CompleteTime != nil {
		a.end = r.Record.CompleteTime.Time
	}
	for i := range r.Record.Conditions {
		if done := r.Record.Conditions[i].CompleteTime; done != nil && done.After(a.end) {
			a.end = done.Time
		}
	}
	if !a.end.After(a.start) {
		a.end = a.start.Add(time.Second)
	}
	return a
}

// ticks returns the times on the axis and their date. If they span several days, each time includes its date.
func (a axis) ticks() (all []tick, date string) {
	layout, date := "15:04", a.start.UTC().Format(time.DateOnly)
	if a.end.Sub(a.start) < ticks*time.Minute {
		layout = time.TimeOnly
	}
	if date != a.end.UTC().Format(time.DateOnly) {
		layout, date = "Jan 2 15:04", a.start.UTC().Format("2006")
	}
	for i := range ticks {
		at := a.start.Add(a.end.Sub(a.start) * time.Duration(i) / (ticks - 1))
		all = append(all, tick{100 * float64(i) / (ticks - 1), at.UTC().Format(layout)})
	}
	return all, date + " UTC"
}

// position returns the position of a time on the axis, from 0 to 100.
func (a axis) position(at time.Time) float64 {
	return percent(100 * float64(at.Sub(a.start)) / float64(a.end.Sub(a.start)))
}

// percent limits a percentage to 0 to 100 and rounds it to two decimal places.
func percent(p float64) float64 { return math.Round(100*min(max(p, 0), 100)) / 100 }

func (a axis) bar(kind string, start, end time.Time) bar {
	left := a.position(start)
	b := bar{Kind: clean(kind), Class: classRunning, Left: left, Width: math.Round(100*(a.position(end)-left)) / 100}
	all := kinds()
	if i := slices.IndexFunc(all, func(k [2]string) bool { return k[0] == kind }); i >= 0 {
		b.Class = all[i][1]
	}
	b.Title = b.Kind + ", " + stamp(start) + ", " + took(start, end)
	return b
}

// newSteps returns the chart of steps with messages and items.
func newSteps(r Report, a axis) chart {
	c := chart{Title: "Steps", Empty: "No step has started."}
	for i := range r.Record.Conditions {
		if r.Record.StartTime == nil {
			break
		}
		step := &r.Record.Conditions[i]
		one := row{Name: clean(step.Type), Text: clean(step.Message)}
		for _, item := range step.Items {
			one.Text += clean(fmt.Sprintf(" [%s %s]", item.Name, item.Status))
		}
		if step.StartTime != nil {
			end := orNow(step.CompleteTime, r.Now)
			one.Took = took(step.StartTime.Time, end)
			one.Bars = []bar{a.bar(stepKind(*step), step.StartTime.Time, end)}
		}
		c.Rows = append(c.Rows, one)
	}
	return c.withLegend()
}

func stepKind(step history.StepCondition) string {
	switch engine.Classify(step) {
	case engine.ClassDone:
		return classDone
	case engine.ClassSkipped:
		return classSkipped
	case engine.ClassFailed:
		return classFailed
	default:
		return classRunning
	}
}

// newChart returns a chart of the rows that overlap the axis, ordered by their first bars.
func newChart(title, empty string, rows []Row, a axis) chart {
	c := chart{Title: title, Empty: empty}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(x, y Row) int { return cmp.Or(first(x).Compare(first(y)), cmp.Compare(x.Name, y.Name)) })
	for _, r := range rows {
		one := row{Name: clean(r.Name)}
		for _, b := range r.Bars {
			if !b.End.Before(a.start) && !b.Start.After(a.end) {
				one.Bars = append(one.Bars, a.bar(string(b.Kind), b.Start, b.End))
			}
		}
		switch {
		case len(one.Bars) == 0:
		case len(c.Rows) == maxRows:
			c.More++
		default:
			c.Rows = append(c.Rows, one)
		}
	}
	return c.withLegend()
}

// withLegend adds a legend for the kinds of bars.
func (c chart) withLegend() chart {
	for _, k := range kinds() {
		if slices.ContainsFunc(c.Rows, func(r row) bool { return slices.ContainsFunc(r.Bars, func(b bar) bool { return b.Kind == k[0] }) }) {
			c.Legend = append(c.Legend, k)
		}
	}
	return c
}

// namesWidth returns the width of the name column, in characters. It is the same for all charts, so their
// times align.
func namesWidth(charts []chart) int {
	width := minName
	for _, c := range charts {
		for _, r := range c.Rows {
			width = widen(width, r.Name)
		}
	}
	return width
}

// widen returns the column width needed to include another name. Overlong names do not count because they are
// wrapped.
func widen(width int, name string) int {
	if n := len([]rune(name)); n <= maxName {
		return max(width, n)
	}
	return width
}

func first(r Row) time.Time {
	if len(r.Bars) == 0 {
		return time.Time{}
	}
	return r.Bars[0].Start
}

// withReboots separates reboots from failures. A node that is not ready while cordoned, for no longer than a
// reboot takes, is rebooting.
func withReboots(rows []Row) []Row {
	all := make([]Row, len(rows))
	for i, r := range rows {
		all[i] = Row{r.Name, slices.Clone(r.Bars)}
		for j := range r.Bars {
			b := &all[i].Bars[j]
			cordoned := func(c Bar) bool { return c.Kind == KindCordoned && !c.End.Before(b.Start) && !c.Start.After(b.Start) }
			if b.Kind == KindNotReady && b.End.Sub(b.Start) <= checks.NotReadyLimit && slices.ContainsFunc(r.Bars, cordoned) {
				b.Kind = KindRebooting
			}
		}
	}
	return all
}
