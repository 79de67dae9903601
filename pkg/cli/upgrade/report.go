// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// reportOptions holds the flags and arguments of the command report.
type reportOptions struct {
	*session.Session
	session.NoFlags
	report.ServeFlags

	args []string
}

// NewReportCommand returns the command that writes the timeline of an upgrade to a file or serves it.
func NewReportCommand(p *session.Session) *cobra.Command {
	o := &reportOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "report FILE [KIND/NAME] | report --serve [KIND/NAME]",
		Short: "Write the timeline of an upgrade to an HTML page, or serve it live",
		Long: "Write the timeline of the latest attempt of an upgrade to a self-contained HTML page. Use - as FILE for standard output.\n\n" +
			"The page shows why the upgrade failed or is waiting, its steps, when nodes were cordoned, rebooting, or not ready, the\n" +
			"alerts that fired, and the Events. Nodes and alerts are read from the cluster's Prometheus. If it cannot be queried,\n" +
			"the states of nodes come from Events, and the page says what is missing. For a uc, the page shows the latest UpgradeJob\n" +
			"that has started.\n\n" +
			"With --serve, the page is served on this machine and updated while it is open in a browser. No file is written.\n\n" + targetDoc,
		Example: "  oc update report upgrade.html\n  oc update report --serve\n  oc update report --overwrite upgrade.html upgrade/cluster -n managed-upgrade-operator",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Serve {
				return validUpgrade(cmd, args)
			}
			return validReport(cmd, args)
		},
		RunE: session.RunE(o),
	}
	o.Bind(cmd)
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

// Complete takes the file and the upgrade from the arguments.
func (o *reportOptions) Complete(cmd *cobra.Command, args []string) error {
	o.args = args
	return o.Check(cmd)
}

// Run writes or serves the page.
func (o *reportOptions) Run(ctx context.Context) error {
	if o.Serve {
		return o.serveReport(ctx)
	}
	return o.writeReport(ctx)
}

func (o *reportOptions) writeReport(ctx context.Context) error {
	file := o.args[0]
	if err := report.CheckWritable(file, o.Overwrite); err != nil {
		return err
	}
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	target, err := findStarted(ctx, o.Session, cluster, o.args[1:])
	if err != nil {
		return err
	}
	made := gatherReport(ctx, cluster, target)
	var page bytes.Buffer
	if err := report.Write(&page, made); err != nil {
		return err
	}
	about := fmt.Sprintf("%s, %s, %s", target, cmp.Or(made.Record.Version, "hooks only"), made.Record.Phase)
	return report.WritePage(o.Session, file, page.Bytes(), o.Overwrite, about, made.Missing)
}

// findStarted returns the upgrade to report on. It must have started.
func findStarted(ctx context.Context, p *session.Session, cluster *session.Cluster, args []string) (upgradeTarget, error) {
	among := choice{kinds: []upgradeKind{kindUpgrade, kindJob}, fits: func(t upgradeTarget) bool { return started(t) != nil }}
	target, err := findUpgrade(ctx, p, cluster, args, among)
	if err != nil {
		return upgradeTarget{}, err
	}
	targets, err := withHistory(ctx, cluster, target)
	if err != nil {
		return upgradeTarget{}, err
	}
	i := slices.IndexFunc(targets, func(t upgradeTarget) bool { return started(t) != nil })
	if i < 0 {
		return upgradeTarget{}, session.Refused("%s has not started an upgrade yet: there is nothing to report; see \"%s preview %s -n %s\"", target, p.Name, target, target.object.GetNamespace())
	}
	return targets[i], nil
}

// started returns the latest started attempt, or nil.
func started(target upgradeTarget) *history.Record {
	records := target.history()
	i := slices.IndexFunc(records, func(r history.Record) bool { return r.StartTime != nil })
	if i < 0 {
		return nil
	}
	return &records[i]
}

// gatherReport reads what happened during the latest attempt of an upgrade. The page lists what could not be
// read.
func gatherReport(ctx context.Context, cluster *session.Cluster, target upgradeTarget) report.Report {
	r := report.Report{Upgrade: target.String(), Namespace: target.object.GetNamespace(), Record: *started(target), Now: cluster.Clock.Now()}
	r.Cluster, _ = clusterstate.GetClusterName(ctx, cluster) // the name is optional
	if r.Record.CompleteTime == nil {
		var err error
		if r.Causes, err = status.Causes(ctx, cluster); err != nil {
			r.Missing = append(r.Missing, "why the update waits: "+err.Error())
		}
	}
	from, to := r.Record.StartTime.Time, orNow(r.Record.CompleteTime, r.Now)
	own, err := readEvents(ctx, cluster, r.Namespace, func(e *corev1.Event) bool { return e.InvolvedObject.UID == target.object.GetUID() })
	if err != nil {
		r.Missing = append(r.Missing, "the Events of the upgrade: "+err.Error())
	}
	ofNodes, err := nodeEvents(ctx, cluster, from, to)
	if err != nil {
		r.Missing = append(r.Missing, "the Events of nodes: "+err.Error())
	}
	r.Events = eventsOf(own, ofNodes)
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
	r.Nodes = eventRows(ofNodes, to)
	return r
}

// eventComponent is the source of the operator's Events.
const eventComponent = "managed-upgrade-operator"

// eventsOf returns the Events about the upgrade and the operator's Events about nodes in chronological order.
func eventsOf(own, ofNodes []corev1.Event) []report.Event {
	var events []report.Event
	for _, all := range [][]corev1.Event{own, ofNodes} {
		for i := range all {
			e := &all[i]
			if e.InvolvedObject.Kind == "Node" && e.Source.Component != eventComponent {
				continue
			}
			events = append(events, report.Event{Time: eventEnd(e), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Message: e.Message})
		}
	}
	slices.SortStableFunc(events, func(a, b report.Event) int { return a.Time.Compare(b.Time) })
	return events
}

// eventPageSize is the page size for Events.
const eventPageSize = 500

// readEvents returns the wanted Events in a namespace.
func readEvents(ctx context.Context, cluster *session.Cluster, namespace string, wanted func(*corev1.Event) bool) ([]corev1.Event, error) {
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

// eventStart and eventEnd return when an Event was first and last observed. Components fill in different
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
