// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the timeline of an upgrade and the state of a fleet as self-contained HTML pages,
// without scripts, fonts, or other files.
package report

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxRows limits the rows of a chart, and maxEvents the rows of the event table, to keep pages readable.
	maxRows, maxEvents = 200, 500

	// maxText limits a text from the cluster, in bytes.
	maxText = 4096
)

// Report holds everything known about an attempt.
type Report struct {
	// Cluster is the name of the cluster, or empty if it is unknown.
	Cluster string
	// Upgrade and Namespace identify the upgrade object.
	Upgrade, Namespace string
	// Record is the record of the attempt. It has no start time until the first step has started.
	Record history.Record
	// Now is the time of the report.
	Now time.Time
	// Facts lists facts about the upgrade that are not in the record.
	Facts []Fact
	// Causes explains why the upgrade does not continue, other than failed steps.
	Causes []Cause
	// StepsOnly omits nodes, alerts, and Events, which are unknown on the hub of a fleet.
	StepsOnly bool
	// Nodes and Alerts are the rows of their charts.
	Nodes, Alerts []Row
	// Events lists events about the upgrade in chronological order.
	Events []Event
	// Missing lists what could not be read, with reasons.
	Missing []string
	// Refresh is how often browsers reload the page, or 0 for never.
	Refresh time.Duration
	// Back is the address of the fleet's page, or empty.
	Back string
}

// Fact is a named value.
type Fact struct{ Name, Value string }

// Cause explains why an upgrade does not continue.
type Cause struct {
	// Chain starts with the cause, followed by its effects.
	Chain []string
	// Remedy describes what the user can do, using Commands if there are any. It may be empty.
	Remedy   string
	Commands []string
}

// Event is an event about the upgrade.
type Event struct {
	Time            time.Time
	Warning         bool
	Reason, Message string
}

// Write writes the page.
func Write(w io.Writer, r Report) error {
	return html.Render(w, newView(r).page())
}

// view holds the contents of the page. All texts are sanitized, and all positions are percentages.
type view struct {
	frame

	Heading, Upgrade, Phase, Class, Message string
	Back                                    string
	Missing                                 []string
	Facts                                   []Fact
	Causes                                  []Cause
	Axis                                    []tick
	Date                                    string
	Charts                                  []chart
	StepsOnly                               bool
	Events                                  []eventRow
	Attempts                                []string
	MoreEvents                              int
}

type eventRow struct {
	Time, Class, Reason, Message string
}

func newView(r Report) view {
	a := newAxis(r)
	versions := cmp.Or(clean(r.Record.Version), "hooks only")
	if before := clean(r.Record.PrecedingVersion); before != "" {
		versions = before + " to " + versions
	}
	v := view{
		Heading: versions, Upgrade: clean(r.Upgrade) + " in namespace " + clean(r.Namespace),
		Phase: clean(string(r.Record.Phase)), Class: phaseClass(r.Record.Phase), Message: clean(r.Record.Message),
		Back: r.Back, StepsOnly: r.StepsOnly, Facts: facts(r, a), Causes: causes(r),
	}
	if r.Cluster != "" {
		v.Heading = clean(r.Cluster) + ": " + versions
	}
	v.frame = frame{v.Heading + ", " + v.Phase, stamp(r.Now), int(r.Refresh.Seconds())}
	for _, missing := range r.Missing {
		v.Missing = append(v.Missing, clean(missing))
	}
	v.Axis, v.Date = a.ticks()
	v.Charts = []chart{newSteps(r, a)}
	if !r.StepsOnly {
		v.Charts = append(v.Charts,
			newChart("Nodes", "No node is known to have been cordoned or not ready.", withReboots(r.Nodes), a),
			newChart("Alerts", "No alert is known to have fired.", r.Alerts, a))
	}
	for i, e := range r.Events {
		if i == maxEvents {
			v.MoreEvents = len(r.Events) - maxEvents
			break
		}
		class := ""
		if e.Warning {
			class = classFailed
		}
		v.Events = append(v.Events, eventRow{stamp(e.Time), class, clean(e.Reason), clean(e.Message)})
	}
	for _, previous := range r.Record.PreviousAttempts {
		v.Attempts = append(v.Attempts, clean(fmt.Sprintf("Attempt %d: %s %s. %s", previous.Attempt, previous.Phase, previous.FailedStep, previous.Message)))
	}
	return v
}

func facts(r Report, a axis) []Fact {
	var all []Fact
	for _, f := range r.Facts {
		all = append(all, Fact{f.Name, clean(f.Value)})
	}
	all = append(all, Fact{"Attempt", fmt.Sprint(max(r.Record.Attempt, 1))})
	if r.Record.StartTime == nil {
		return append(all, Fact{"Started", "not yet"})
	}
	all = append(all, Fact{"Started", stamp(a.start)})
	if t := r.Record.CommenceTime; t != nil {
		all = append(all, Fact{"Commenced", stamp(t.Time)})
	}
	if t := r.Record.WorkerCompleteTime; t != nil {
		all = append(all, Fact{"Workers upgraded", stamp(t.Time)})
	}
	ended := "not yet"
	if t := r.Record.CompleteTime; t != nil {
		ended = stamp(t.Time)
	}
	return append(all, Fact{"Ended", ended}, Fact{"Duration", took(a.start, a.end)})
}

// causes returns the failed steps and the report's causes.
func causes(r Report) []Cause {
	var all []Cause
	for i := range r.Record.Conditions {
		if step := &r.Record.Conditions[i]; engine.Classify(*step) == engine.ClassFailed {
			all = append(all, Cause{Chain: []string{clean(step.Type + " failed: " + cmp.Or(step.Message, step.Reason))}})
		}
	}
	for _, c := range r.Causes {
		one := Cause{Remedy: clean(c.Remedy)}
		for _, link := range c.Chain {
			one.Chain = append(one.Chain, clean(link))
		}
		for _, command := range c.Commands {
			one.Commands = append(one.Commands, clean(command))
		}
		all = append(all, one)
	}
	return all
}

func phaseClass(phase history.Phase) string {
	switch phase {
	case history.PhaseUpgraded:
		return classDone
	case history.PhaseFailed, history.PhaseUnknown:
		return classFailed
	case history.PhaseSkipped:
		return classSkipped
	case history.PhaseNew, history.PhasePending, history.PhaseUpgrading, history.PhasePaused:
	}
	return classRunning
}

func orNow(at *metav1.Time, now time.Time) time.Time {
	if at == nil {
		return now
	}
	return at.Time
}

func took(start, end time.Time) string { return duration.HumanDuration(max(end.Sub(start), 0)) }

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }

// clean sanitizes a text from the cluster.
func clean(s string) string { return text.Sanitize(s, maxText) }

// clip sanitizes and shortens a text for a table cell.
func clip(s string) string { return text.Sanitize(s, maxCell) }
