// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// errNoPrometheus explains why a dump has no series.
var errNoPrometheus = errors.New("there is no Prometheus to query")

// Series of kube-state-metrics and Prometheus shown in a report.
const (
	nodesQuery    = "count(kube_node_spec_unschedulable)"
	cordonedQuery = "kube_node_spec_unschedulable == 1"
	notReadyQuery = `kube_node_status_condition{condition="Ready",status="true"} == 0`
	alertsQuery   = `ALERTS{alertstate="firing"}`
)

// nodeRows returns when nodes were cordoned or not ready, and the periods without data.
func nodeRows(ctx context.Context, cluster *session.Cluster, from, to time.Time) (all []report.Row, gaps string, err error) {
	known, err := spans(ctx, cluster, nodesQuery, from, to)
	switch {
	case err != nil:
		return nil, "", err
	case len(known) == 0:
		return nil, "", errors.New("no series kube_node_spec_unschedulable in Prometheus")
	}
	rows := map[string][]report.Bar{}
	for _, of := range []struct {
		query string
		kind  report.BarKind
	}{{cordonedQuery, report.KindCordoned}, {notReadyQuery, report.KindNotReady}} {
		found, err := spans(ctx, cluster, of.query, from, to)
		if err != nil {
			return nil, "", err
		}
		for _, series := range found {
			addBars(rows, series.Labels["node"], of.kind, series.Spans)
		}
	}
	return rowsOf(rows), gapsOf(known[0].Spans, from, to), nil
}

// alertRows returns when alerts fired, and the periods without data, in which the watchdog did not fire.
func alertRows(ctx context.Context, cluster *session.Cluster, from, to time.Time) (all []report.Row, gaps string, err error) {
	found, err := spans(ctx, cluster, alertsQuery, from, to)
	if err != nil {
		return nil, "", err
	}
	rows := map[string][]report.Bar{}
	var known []prometheus.Span
	for _, series := range found {
		name, kind := series.Labels["alertname"], report.KindWarning
		if name == session.Watchdog {
			known = series.Spans
			continue
		}
		if in := series.Labels["namespace"]; in != "" {
			name += " in " + in
		}
		if strings.EqualFold(series.Labels["severity"], "critical") {
			kind = report.KindCritical
		}
		addBars(rows, name, kind, series.Spans)
	}
	return rowsOf(rows), gapsOf(known, from, to), nil
}

// maxPoints limits how often an expression is evaluated.
const maxPoints = 400

// stepOf returns the time between evaluations of an expression.
func stepOf(from, to time.Time) time.Duration {
	return max(15*time.Second, (to.Sub(from) / maxPoints).Round(time.Second))
}

func spans(ctx context.Context, cluster *session.Cluster, query string, from, to time.Time) ([]prometheus.Series, error) {
	if cluster.Spans == nil {
		return nil, errNoPrometheus
	}
	return cluster.Spans(ctx, query, from, to, stepOf(from, to))
}

// gapsOf describes the periods without data, or returns "" if there are none.
func gapsOf(known []prometheus.Span, from, to time.Time) string {
	var gaps []string
	last := from
	for _, span := range append(slices.Clone(known), prometheus.Span{Start: to, End: to}) {
		if span.Start.Sub(last) > 2*stepOf(from, to) {
			gaps = append(gaps, last.UTC().Format(time.TimeOnly)+" to "+span.Start.UTC().Format(time.TimeOnly))
		}
		last = span.End
	}
	if len(gaps) == 0 {
		return ""
	}
	return "Prometheus has no data from " + strings.Join(gaps, ", and from ") + " UTC"
}

func addBars(rows map[string][]report.Bar, name string, kind report.BarKind, spans []prometheus.Span) {
	for _, span := range spans {
		rows[name] = append(rows[name], report.Bar{Kind: kind, Start: span.Start, End: span.End})
	}
}

func rowsOf(bars map[string][]report.Bar) []report.Row {
	rows := make([]report.Row, 0, len(bars))
	for name, all := range bars {
		slices.SortStableFunc(all, func(a, b report.Bar) int { return a.Start.Compare(b.Start) })
		rows = append(rows, report.Row{Name: name, Bars: all})
	}
	return rows
}

// nodeEvents returns the Events about nodes in a period.
func nodeEvents(ctx context.Context, cluster *session.Cluster, from, to time.Time) ([]corev1.Event, error) {
	return readEvents(ctx, cluster, corev1.NamespaceDefault, func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind == "Node" && !eventEnd(e).Before(from) && !eventStart(e).After(to)
	})
}

// nodeEventStates maps the reasons of Kubernetes' Events about nodes to the bars that they start or end.
func nodeEventStates() map[string]nodeEventState {
	return map[string]nodeEventState{
		"NodeNotSchedulable": {report.KindCordoned, true}, "NodeSchedulable": {report.KindCordoned, false},
		"NodeNotReady": {report.KindNotReady, true}, "NodeReady": {report.KindNotReady, false},
	}
}

type nodeEventState struct {
	kind   report.BarKind
	begins bool
}

// occurrence is one occurrence of an Event.
type occurrence struct {
	nodeEventState

	at time.Time
}

// eventRows returns when nodes were cordoned or not ready according to their Events. A node with only other
// Events gets a bar from its first to its last Event.
func eventRows(all []corev1.Event, to time.Time) []report.Row {
	states, rows, times := nodeEventStates(), map[string][]report.Bar{}, map[string][]occurrence{}
	for i := range all {
		node, bar := all[i].InvolvedObject.Name, report.Bar{Kind: report.KindEvents, Start: eventStart(&all[i]), End: eventEnd(&all[i])}
		if state, known := states[all[i].Reason]; known {
			times[node] = append(times[node], occurrence{state, bar.Start})
			if bar.End.After(bar.Start) {
				times[node] = append(times[node], occurrence{state, bar.End})
			}
		}
		if before := rows[node]; before != nil {
			bar.Start, bar.End = earlier(bar.Start, before[0].Start), later(bar.End, before[0].End)
		}
		rows[node] = []report.Bar{bar}
	}
	for node, all := range times {
		if bars := stateBars(all, to); len(bars) > 0 {
			rows[node] = bars
		}
	}
	return rowsOf(rows)
}

// stateBars returns the periods between Events that start and end a state. A state without an end lasts until
// now. A state without a start is skipped because its start is unknown.
func stateBars(all []occurrence, to time.Time) []report.Bar {
	slices.SortStableFunc(all, func(a, b occurrence) int { return a.at.Compare(b.at) })
	var bars []report.Bar
	open := map[report.BarKind]int{} // positions of open bars, starting at 1
	for _, o := range all {
		i := open[o.kind]
		switch {
		case o.begins && i == 0:
			bars = append(bars, report.Bar{Kind: o.kind, Start: o.at, End: to})
			open[o.kind] = len(bars)
		case !o.begins && i > 0:
			bars[i-1].End, open[o.kind] = o.at, 0
		}
	}
	return bars
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
