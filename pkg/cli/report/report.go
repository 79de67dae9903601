// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the timeline of an upgrade, and the state of a fleet, as HTML pages that need nothing else: no
// script, no font, and no other file.
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
	// maxRows bounds the rows of a chart, and maxEvents the rows of the table: a page is read by people.
	maxRows, maxEvents = 200, 500

	// maxText bounds a text from the cluster, in bytes.
	maxText = 4096
)

// Report holds what is known about an attempt.
type Report struct {
	// Cluster is the name of the cluster; empty if unknown.
	Cluster string
	// Upgrade names the object, and Namespace is where it is.
	Upgrade, Namespace string
	// Record is the attempt. It has no start time if no step has started.
	Record history.Record
	// Now is when the report is made.
	Now time.Time
	// Facts are facts about the upgrade that the record lacks.
	Facts []Fact
	// Causes are why the upgrade does not continue, other than steps that failed.
	Causes []Cause
	// StepsOnly leaves out nodes, alerts, and Events, which the hub of a fleet does not know.
	StepsOnly bool
	// Nodes and Alerts are rows of their charts.
	Nodes, Alerts []Row
	// Events are about the upgrade, in the order of their times.
	Events []Event
	// Missing describes what could not be read, and why.
	Missing []string
	// Refresh is how often a browser asks for the page again; 0 means never.
	Refresh time.Duration
	// Back is the address of the page of the fleet; empty means none.
	Back string
}

// Fact is a value with a name.
type Fact struct{ Name, Value string }

// Cause is why an upgrade does not continue.
type Cause struct {
	// Chain is the cause and what follows from it, in the order of cause and effect.
	Chain []string
	// Remedy describes what a person can do, by the commands if there are any. It may be empty.
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

// The view holds what the page shows. All texts are harmless, and all positions are percentages.
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

// causes returns the steps that failed, and the causes that the report names.
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

// clean removes what could disguise a text from the cluster.
func clean(s string) string { return text.Sanitize(s, maxText) }

// clip is clean for the cell of a table.
func clip(s string) string { return text.Sanitize(s, maxCell) }
