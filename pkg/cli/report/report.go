// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the timeline of an upgrade as an HTML page that needs nothing else: no script, no
// font, and no other file.
package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxRows bounds the rows of a chart, and maxEvents those of the table: a page is read by people.
	maxRows, maxEvents = 200, 500

	// maxText bounds a text from the cluster, in bytes.
	maxText = 4096

	// ticks is the number of times on the axis.
	ticks = 5
)

// Report is what is known about an attempt that has started.
type Report struct {
	// Upgrade names the object, and Namespace is where it is.
	Upgrade, Namespace string
	// Record is the attempt. It has a start time.
	Record history.Record
	// Now is when the report is made.
	Now time.Time
	// Nodes and Alerts are rows of their charts.
	Nodes, Alerts []Row
	// Events are about the upgrade, in the order of their times.
	Events []Event
	// Missing says what could not be read, and why.
	Missing []string
}

// Row is a row of a chart.
type Row struct {
	Name string
	Bars []Bar
}

// Kind is what a bar means; the page shows it as a color and as a word.
type Kind string

// The kinds of bars of nodes and alerts. Those of steps are the classes of the engine.
const (
	KindCordoned Kind = "cordoned"
	KindNotReady Kind = "not ready"
	KindEvents   Kind = "events"
	KindWarning  Kind = "warning"
	KindCritical Kind = "critical"
)

// Bar is a time in which something was the case.
type Bar struct {
	Kind       Kind
	Start, End time.Time
}

// Event is an event about the upgrade.
type Event struct {
	Time                  time.Time
	Warning               bool
	Reason, Message, Name string
}

//go:embed report.html
var source string

var page = template.Must(template.New("report").Parse(source))

// Write writes the page.
func Write(w io.Writer, r Report) error {
	return page.Execute(w, newView(r))
}

// The view is what the template shows. All texts are harmless, and all positions are percentages.
type view struct {
	Title, Versions, Namespace, Phase, Class, Message, Made string
	Facts                                                   []fact
	Axis                                                    []tick
	Charts                                                  []chart
	Events                                                  []eventRow
	Attempts                                                []string
	Missing                                                 []string
	MoreEvents                                              int
}

type fact struct{ Name, Value string }

type tick struct {
	Left float64
	Text string
}

type chart struct {
	Title, Empty string
	Rows         []row
	More         int
}

type row struct {
	Name, Took, Text string
	Bars             []bar
}

type bar struct {
	Class, Title string
	Left, Width  float64
}

type eventRow struct {
	Time, Class, Reason, Message string
}

// axis is the time that the charts show.
type axis struct{ start, end time.Time }

func newAxis(r Report) axis {
	a := axis{r.Record.StartTime.Time, r.Now}
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

// position returns where a time is, from 0 to 100.
func (a axis) position(at time.Time) float64 {
	percent := min(max(100*float64(at.Sub(a.start))/float64(a.end.Sub(a.start)), 0), 100)
	return math.Round(100*percent) / 100
}

func (a axis) bar(class, title string, start, end time.Time) bar {
	left := a.position(start)
	return bar{Class: class, Title: clean(title) + ", " + stamp(start) + ", " + took(start, end), Left: left, Width: math.Round(100*(a.position(end)-left)) / 100}
}

func newView(r Report) view {
	a := newAxis(r)
	v := view{
		Title: clean(r.Upgrade), Namespace: clean(r.Namespace), Versions: cmp.Or(clean(r.Record.Version), "hooks only"),
		Phase: clean(string(r.Record.Phase)), Class: phaseClass(r.Record.Phase), Message: clean(r.Record.Message), Made: stamp(r.Now),
	}
	if before := clean(r.Record.PrecedingVersion); before != "" {
		v.Versions = before + " to " + v.Versions
	}
	v.Facts = facts(r, a)
	for i := range ticks {
		at := a.start.Add(a.end.Sub(a.start) * time.Duration(i) / (ticks - 1))
		v.Axis = append(v.Axis, tick{100 * float64(i) / (ticks - 1), at.UTC().Format("15:04")})
	}
	v.Charts = []chart{
		{Title: "Steps", Rows: stepRows(r, a), Empty: "No step has started."},
		newChart("Nodes", "No node is known to have been cordoned or not ready.", r.Nodes, a),
		newChart("Alerts", "No alert is known to have fired.", r.Alerts, a),
	}
	for i, e := range r.Events {
		if i == maxEvents {
			v.MoreEvents = len(r.Events) - maxEvents
			break
		}
		class := ""
		if e.Warning {
			class = "failed"
		}
		v.Events = append(v.Events, eventRow{stamp(e.Time), class, clean(e.Reason), clean(e.Message)})
	}
	for _, previous := range r.Record.PreviousAttempts {
		v.Attempts = append(v.Attempts, clean(fmt.Sprintf("Attempt %d: %s %s. %s", previous.Attempt, previous.Phase, previous.FailedStep, previous.Message)))
	}
	for _, missing := range r.Missing {
		v.Missing = append(v.Missing, clean(missing))
	}
	return v
}

func facts(r Report, a axis) []fact {
	all := []fact{{"Attempt", fmt.Sprint(max(r.Record.Attempt, 1))}, {"Started", stamp(a.start)}}
	if t := r.Record.CommenceTime; t != nil {
		all = append(all, fact{"Commenced", stamp(t.Time)})
	}
	if t := r.Record.WorkerCompleteTime; t != nil {
		all = append(all, fact{"Workers upgraded", stamp(t.Time)})
	}
	ended := "not yet"
	if t := r.Record.CompleteTime; t != nil {
		ended = stamp(t.Time)
	}
	return append(all, fact{"Ended", ended}, fact{"Duration", took(a.start, a.end)})
}

// stepRows returns a row for each step, with its message and its items.
func stepRows(r Report, a axis) []row {
	var rows []row
	for i := range r.Record.Conditions {
		step := &r.Record.Conditions[i]
		one := row{Name: clean(step.Type), Text: clean(step.Message)}
		for _, item := range step.Items {
			one.Text += clean(fmt.Sprintf(" [%s %s]", item.Name, item.Status))
		}
		if step.StartTime != nil {
			end := orNow(step.CompleteTime, r.Now)
			class := stepClass(*step)
			one.Took = took(step.StartTime.Time, end)
			one.Bars = []bar{a.bar(class, class, step.StartTime.Time, end)}
		}
		rows = append(rows, one)
	}
	return rows
}

// newChart returns the chart of rows that overlap with the axis, in the order of their first bars.
func newChart(title, empty string, rows []Row, a axis) chart {
	c := chart{Title: title, Empty: empty}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(x, y Row) int { return cmp.Or(first(x).Compare(first(y)), cmp.Compare(x.Name, y.Name)) })
	for _, r := range rows {
		one := row{Name: clean(r.Name)}
		for _, b := range r.Bars {
			if !b.End.Before(a.start) && !b.Start.After(a.end) {
				one.Bars = append(one.Bars, a.bar(class(b.Kind), string(b.Kind), b.Start, b.End))
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
	return c
}

func first(r Row) time.Time {
	if len(r.Bars) == 0 {
		return time.Time{}
	}
	return r.Bars[0].Start
}

// class returns the class of the style sheet for a kind of bar.
func class(kind Kind) string {
	switch kind {
	case KindCritical, KindNotReady:
		return "failed"
	case KindWarning, KindCordoned:
		return "warning"
	case KindEvents:
	}
	return "running"
}

func stepClass(step history.StepCondition) string {
	switch engine.Classify(step) {
	case engine.ClassDone:
		return "done"
	case engine.ClassSkipped:
		return "skipped"
	case engine.ClassFailed:
		return "failed"
	default:
		return "running"
	}
}

func phaseClass(phase history.Phase) string {
	switch phase {
	case history.PhaseUpgraded:
		return "done"
	case history.PhaseFailed, history.PhaseUnknown:
		return "failed"
	case history.PhaseSkipped:
		return "skipped"
	case history.PhaseNew, history.PhasePending, history.PhaseUpgrading, history.PhasePaused:
	}
	return "running"
}

func orNow(at *metav1.Time, now time.Time) time.Time {
	if at == nil {
		return now
	}
	return at.Time
}

func took(start, end time.Time) string { return duration.HumanDuration(max(end.Sub(start), 0)) }

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// clean removes what could disguise a text from the cluster.
func clean(s string) string { return text.Sanitize(s, maxText) }
