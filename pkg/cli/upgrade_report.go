// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// reportCommand writes the timeline of an upgrade into a file.
func (p *Program) reportCommand() *cobra.Command {
	overwrite := false
	cmd := &cobra.Command{
		Use:   "report FILE [KIND/NAME]",
		Short: "Writes the timeline of an upgrade as an HTML page.",
		Long: "Writes the timeline of the latest attempt of an upgrade as one HTML page that needs no other file: the steps, when nodes\n" +
			"were cordoned or not ready, the alerts that fired, and the Events. FILE - is standard output. The page of a uc is\n" +
			"that of its latest UpgradeJob that has started.\n\n" +
			"Nodes and alerts come from the Prometheus of the cluster. Without it, nodes are shown by their Events, and the page says\n" +
			"what is missing.\n\n" + targetDoc,
		Example: "  oc update report upgrade.html\n  oc update report --overwrite upgrade.html upgrade/cluster -n managed-upgrade-operator",
		Args:    validReport,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.writeReport(cmd.Context(), args, overwrite)
		},
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace FILE if it exists")
	return cmd
}

// validReport accepts a file and KIND/NAME.
func validReport(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name the FILE to write, for example upgrade.html")
	case len(args) > 2:
		return fmt.Errorf("unexpected %q after FILE and KIND/NAME", args[2])
	case validUpgrade(cmd, args[:1]) == nil:
		return fmt.Errorf("%q is an upgrade: name the FILE to write before it, for example upgrade.html", args[0])
	}
	return validUpgrade(cmd, args[1:])
}

func (p *Program) writeReport(ctx context.Context, args []string, overwrite bool) error {
	file := args[0]
	if err := checkWritable(file, overwrite); err != nil {
		return err
	}
	cluster, err := p.connect()
	if err != nil {
		return err
	}
	among := choice{[]upgradeKind{kindUpgrade, kindJob}, func(t upgradeTarget) bool { return started(t) != nil }}
	target, err := p.findUpgrade(ctx, cluster, args[1:], among)
	if err != nil {
		return err
	}
	targets, err := withHistory(ctx, cluster, target)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(targets, func(t upgradeTarget) bool { return started(t) != nil })
	if i < 0 {
		return refused("%s has not started an upgrade yet: there is nothing to report; see \"%s preview %s -n %s\"", target, p.name, target, target.object.GetNamespace())
	}
	made := gatherReport(ctx, cluster, targets[i])
	var page bytes.Buffer
	if err := report.Write(&page, made); err != nil {
		return err
	}
	if file == stdinPlaceholder {
		_, err := page.WriteTo(p.Streams.Out)
		return err
	}
	if err := writeFile(file, page.Bytes(), overwrite); err != nil {
		return err
	}
	for _, missing := range made.Missing {
		if _, err := fmt.Fprintln(p.Streams.ErrOut, clean("The page lacks "+missing)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(p.Streams.Out, clean(fmt.Sprintf("Wrote %s: %s, %s, %s.", file, targets[i], cmp.Or(made.Record.Version, "hooks only"), made.Record.Phase)))
	return err
}

// checkWritable returns an error if a file exists that must not be replaced, before anything is read.
func checkWritable(file string, overwrite bool) error {
	info, err := os.Stat(file)
	switch {
	case file == stdinPlaceholder || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return usageError("%s is a folder: name a file, for example %s", file, filepath.Join(file, "upgrade.html"))
	case !overwrite:
		return usageError("%s exists: name another file, or replace it with --overwrite", file)
	}
	return nil
}

// writeFile writes a file; one that exists is replaced if that is permitted.
func writeFile(file string, content []byte, overwrite bool) error {
	mode := os.O_EXCL
	if overwrite {
		mode = os.O_TRUNC
	}
	out, err := os.OpenFile(filepath.Clean(file), os.O_WRONLY|os.O_CREATE|mode, 0o644) //nolint:gosec // A report is made to be passed on.
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return errors.Join(err, out.Close())
}

// started returns the latest attempt that has started; nil means that there is none.
func started(target upgradeTarget) *history.Record {
	records := target.history()
	i := slices.IndexFunc(records, func(r history.Record) bool { return r.StartTime != nil })
	if i < 0 {
		return nil
	}
	return &records[i]
}

// gatherReport reads what happened during the latest attempt of an upgrade. What cannot be read is named.
func gatherReport(ctx context.Context, cluster *Cluster, target upgradeTarget) report.Report {
	r := report.Report{Upgrade: target.String(), Namespace: target.object.GetNamespace(), Record: *started(target), Now: cluster.Clock.Now()}
	from, to := r.Record.StartTime.Time, orNow(r.Record.CompleteTime, r.Now)
	own, err := readEvents(ctx, cluster, r.Namespace, func(e *corev1.Event) bool { return e.InvolvedObject.UID == target.object.GetUID() })
	if err != nil {
		r.Missing = append(r.Missing, "the Events of the upgrade: "+err.Error())
	}
	for i := range own {
		r.Events = append(r.Events, report.Event{
			Time: eventEnd(&own[i]), Warning: own[i].Type == corev1.EventTypeWarning, Reason: own[i].Reason, Message: own[i].Message,
		})
	}
	slices.SortStableFunc(r.Events, func(a, b report.Event) int { return a.Time.Compare(b.Time) })
	var gaps string
	if r.Alerts, gaps, err = alertRows(ctx, cluster, from, to); err != nil {
		gaps = err.Error()
	}
	if gaps != "" {
		r.Missing = append(r.Missing, "alerts: "+gaps)
	}
	switch r.Nodes, gaps, err = nodeRows(ctx, cluster, from, to); {
	case err == nil && gaps == "":
		return r
	case err == nil:
		r.Missing = append(r.Missing, "nodes: "+gaps)
		return r
	}
	r.Missing = append(r.Missing, "when nodes were cordoned or not ready; their Events are shown instead: "+err.Error())
	if r.Nodes, err = eventRows(ctx, cluster, from, to); err != nil {
		r.Missing = append(r.Missing, "the Events of nodes: "+err.Error())
	}
	return r
}

// errNoPrometheus is the reason for missing series of a dump.
var errNoPrometheus = errors.New("there is no Prometheus to query")

// The series of kube-state-metrics and of Prometheus that a report shows.
const (
	nodesQuery    = "count(kube_node_spec_unschedulable)"
	cordonedQuery = "kube_node_spec_unschedulable == 1"
	notReadyQuery = `kube_node_status_condition{condition="Ready",status="true"} == 0`
	alertsQuery   = `ALERTS{alertstate="firing"}`
)

// nodeRows returns when nodes were cordoned or not ready, and when that is unknown.
func nodeRows(ctx context.Context, cluster *Cluster, from, to time.Time) (all []report.Row, gaps string, err error) {
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
		kind  report.Kind
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

// alertRows returns when alerts fired, and when that is unknown because the watchdog did not.
func alertRows(ctx context.Context, cluster *Cluster, from, to time.Time) (all []report.Row, gaps string, err error) {
	found, err := spans(ctx, cluster, alertsQuery, from, to)
	if err != nil {
		return nil, "", err
	}
	rows := map[string][]report.Bar{}
	var known []prometheus.Span
	for _, series := range found {
		name, kind := series.Labels["alertname"], report.KindWarning
		if name == watchdog {
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

// maxPoints bounds how often an expression is evaluated.
const maxPoints = 400

// stepOf is how far the times are apart at which an expression is evaluated.
func stepOf(from, to time.Time) time.Duration {
	return max(15*time.Second, (to.Sub(from) / maxPoints).Round(time.Second))
}

func spans(ctx context.Context, cluster *Cluster, query string, from, to time.Time) ([]prometheus.Series, error) {
	if cluster.Spans == nil {
		return nil, errNoPrometheus
	}
	return cluster.Spans(ctx, query, from, to, stepOf(from, to))
}

// gapsOf says when there are no data; it is empty if they cover the time.
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

func addBars(rows map[string][]report.Bar, name string, kind report.Kind, spans []prometheus.Span) {
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

// eventRows returns, for each node, the time from its first Event to the last one.
func eventRows(ctx context.Context, cluster *Cluster, from, to time.Time) ([]report.Row, error) {
	all, err := readEvents(ctx, cluster, corev1.NamespaceDefault, func(e *corev1.Event) bool {
		return e.InvolvedObject.Kind == "Node" && !eventEnd(e).Before(from) && !eventStart(e).After(to)
	})
	rows := map[string][]report.Bar{}
	for i := range all {
		node, bar := all[i].InvolvedObject.Name, report.Bar{Kind: report.KindEvents, Start: eventStart(&all[i]), End: eventEnd(&all[i])}
		if before := rows[node]; before != nil {
			bar.Start, bar.End = earlier(bar.Start, before[0].Start), later(bar.End, before[0].End)
		}
		rows[node] = []report.Bar{bar}
	}
	return rowsOf(rows), err
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

// eventPageSize bounds a page of a list of Events.
const eventPageSize = 500

// readEvents returns some of the Events in a namespace.
func readEvents(ctx context.Context, cluster *Cluster, namespace string, wanted func(*corev1.Event) bool) ([]corev1.Event, error) {
	var events []corev1.Event
	var page corev1.EventList
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = corev1.EventList{}
		if err := cluster.List(ctx, &page, client.InNamespace(namespace), client.Limit(eventPageSize), client.Continue(from)); err != nil {
			return nil, fmt.Errorf("listing Events in namespace %s: %w", namespace, err)
		}
		for i := range page.Items {
			if wanted(&page.Items[i]) {
				events = append(events, page.Items[i])
			}
		}
	}
	return events, nil
}

// eventStart and eventEnd return when an Event was first and last observed: components fill different
// fields.
func eventStart(e *corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}

func eventEnd(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return eventStart(e)
}
