// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// statusOptions holds the flags of the command status.
type statusOptions struct {
	*session.Session
	session.NoArguments

	format    *session.Output
	details   bool
	nodes     []string
	selector  string
	wait      time.Duration
	watch     bool
	namespace string
}

const (
	// defaultWait is how long --wait without a value waits.
	defaultWait = 2 * time.Minute
	// livePollInterval is the time between reads of -w without the Update Status Controller. Each read covers
	// the whole cluster.
	livePollInterval = 30 * time.Second
)

// NewCommand returns the command that prints the update status of the cluster.
func NewCommand(p *session.Session) *cobra.Command {
	o := &statusOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the update status of the cluster",
		Long:  statusDoc,
		Example: "  oc update status\n  oc update status --details\n  oc update status --node worker-3\n" +
			"  oc update status --replay must-gather.local.123 --now 2026-11-22T14:00:00Z",
		Args: manager.NoArgs,
		RunE: session.RunE(o),
	}
	o.format = session.OutputFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.details, "details", false, "also print all insights with descriptions, all causes, nodes, operators that are not updated, and sources")
	flags.StringSliceVar(&o.nodes, "node", nil, "also print insights about this node; may be repeated")
	flags.StringVarP(&o.selector, "selector", "l", "", "also print insights about nodes with these labels, for example zone=a")
	flags.DurationVar(&o.wait, "wait", 0, "how long to wait for update informers that have not answered yet")
	flags.Lookup("wait").NoOptDefVal = defaultWait.String()
	flags.BoolVarP(&o.watch, "watch", "w", false, "print the status whenever it changes, until interrupted")
	flags.StringVar(&o.namespace, "controller-namespace", session.ControllerNamespace, "namespace of the Update Status Controller")
	return cmd
}

const statusDoc = "Show the update status of the cluster: whether an update is progressing, waiting, or stuck, why and since when, and what\n" +
	"to do.\n\n" +
	"The status is published by the Update Status Controller. If the controller is not installed or its status is outdated,\n" +
	"the command computes the status itself, and the last line lists missing data. The exit code is the verdict."

// Validate checks the flags.
func (o *statusOptions) Validate() error {
	if err := o.format.Check(); err != nil {
		return err
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return session.UsageError("--selector: is %q, must be labels such as zone=a", o.selector)
	}
	if o.IsReplay() && (o.watch || o.wait > 0) {
		return session.UsageError("--replay: a dump does not change; leave out --watch and --wait")
	}
	if o.watch && !o.format.IsText() {
		return session.UsageError("--watch: prints text only; leave out --output")
	}
	return nil
}

// Run prints the status.
func (o *statusOptions) Run(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	return o.report(ctx, cluster)
}

// report prints the status of a cluster and returns its verdict as an exit code.
func (o *statusOptions) report(ctx context.Context, cluster *session.Cluster) error {
	s, err := o.await(ctx, cluster)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, cluster, s)
	}
	if !o.format.IsText() {
		if err := o.format.Print(o.Streams.Out, s.object); err != nil {
			return err
		}
		return session.ExitWith(verdict(s))
	}
	printed, err := o.screen(ctx, cluster, s)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(o.Streams.Out, printed); err != nil {
		return err
	}
	return session.ExitWith(verdict(s))
}

// await reads the status. Until --wait expires, it repeats the read while an informer has not answered.
func (o *statusOptions) await(ctx context.Context, cluster *session.Cluster) (snapshot, error) {
	end := o.Clock.Now().Add(o.wait)
	updateEnd := o.Clock.Now().Add(defaultWait)
	announced := o.wait > 0 || o.watch
	for {
		s, err := readStatus(ctx, cluster, o.namespace, nil)
		if err != nil || !s.origin.published || !waitsForInformers(s) {
			return s, err
		}
		if now := o.Clock.Now(); !now.Before(end) {
			updating := updatingInformers(ctx, cluster)
			if o.watch || len(updating) == 0 || !now.Before(updateEnd) {
				return s, nil
			}
			if !announced {
				announced = true
				fmt.Fprintf(o.Streams.ErrOut, "%s: waiting up to %s for %s to update itself\n", o.Name, duration.HumanDuration(defaultWait), text.JoinNames(updating))
			}
		}
		select {
		case <-ctx.Done():
			return s, nil
		case <-o.Clock.After(session.PollInterval):
		}
	}
}

// updatingInformers returns the names of the informers that report that they are updating themselves.
func updatingInformers(ctx context.Context, c *session.Cluster) []string {
	var list updatev1beta1.UpdateInformerList
	if err := c.List(ctx, &list); err != nil {
		return nil // without the list, there is nothing to wait for
	}
	var names []string
	for i := range list.Items {
		updating := slices.ContainsFunc(list.Items[i].Status.Conditions, func(condition updatev1beta1.InformerCondition) bool {
			return condition.Type == updatev1beta1.ConditionOnline && condition.Status == metav1.ConditionFalse &&
				condition.Reason == updatev1beta1.ReasonInformerUpdating && !condition.IsStale(c.Clock.Now())
		})
		if updating && list.Items[i].IsEnabled() {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// waitsForInformers reports whether any informer source is not current.
func waitsForInformers(s snapshot) bool {
	return slices.ContainsFunc(s.object.Status.Assessment.Sources, func(source updatev1beta1.Source) bool {
		return !source.Current && strings.HasPrefix(source.Name, updatev1beta1.SourceInformerPrefix)
	})
}

// verdict returns the exit code for a status.
func verdict(s snapshot) session.ExitCode {
	assessment := s.object.Status.Assessment
	switch {
	case assessment == nil:
		return session.ExitUnknown
	case assessment.State == updatev1beta1.StateStuck, assessment.ActionRequired:
		return session.ExitActionRequired
	case assessment.State == updatev1beta1.StateIdle:
		return session.ExitDone
	case assessment.State == updatev1beta1.StateProgressing:
		return session.ExitProgressing
	case assessment.State == updatev1beta1.StateWaiting:
		return session.ExitWaiting
	default:
		return session.ExitUnknown
	}
}

// screen returns the text of a status with the details selected by flags.
func (o *statusOptions) screen(ctx context.Context, cluster *session.Cluster, s snapshot) (string, error) {
	newScreen := func() *statusScreen { return newScreen(o.Session, s, o.details || o.format.IsWide()) }
	parts := []string{newScreen().render()}
	word, c := headWord(s.object.Status.Assessment.State)
	parts[0] = o.Paint(c, word) + strings.TrimPrefix(parts[0], word)
	if len(o.nodes) > 0 || o.selector != "" {
		nodes, err := o.selectedNodes(ctx, cluster)
		if err != nil {
			return "", err
		}
		if err := o.checkNodes(ctx, cluster, s); err != nil {
			return "", err
		}
		parts = append(parts, newScreen().renderDetails(func(i updatev1beta1.Insight) bool { return isAbout(i, nodes) }))
	} else if o.details {
		parts = append(parts, newScreen().renderDetails(nil), newScreen().renderParts(factsOf(ctx, cluster, s)))
	}
	if o.details {
		parts = append(parts, newScreen().renderSources())
	}
	return strings.Join(parts, "\n"), nil
}

func newScreen(p *session.Session, s snapshot, details bool) *statusScreen {
	return &statusScreen{
		Layout: screen.Layout{Width: p.Terminal.Columns()}, status: s.object.Status, assessment: *s.object.Status.Assessment,
		origin: s.origin, now: s.now, name: p.Name, details: details,
	}
}

// selectedNodes returns the names of the nodes selected by flags.
func (o *statusOptions) selectedNodes(ctx context.Context, cluster *session.Cluster) ([]string, error) {
	if o.selector == "" {
		return o.nodes, nil
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, session.UsageError("--selector: %w", err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := cluster.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the nodes of --selector: %w", err)
	}
	nodes := slices.Clone(o.nodes)
	for i := range list.Items {
		nodes = append(nodes, list.Items[i].Name)
	}
	if len(nodes) == 0 {
		return nil, errors.New("--selector: no node has these labels")
	}
	return nodes, nil
}

// checkNodes returns an error if a node in --node does not exist. A node in an insight is known to exist.
func (o *statusOptions) checkNodes(ctx context.Context, cluster *session.Cluster, s snapshot) error {
	for _, name := range o.nodes {
		if s.hasInsightAbout(name) {
			continue
		}
		node := &metav1.PartialObjectMetadata{}
		node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		if err := cluster.Get(ctx, client.ObjectKey{Name: name}, node); apierrors.IsNotFound(err) {
			return fmt.Errorf("--node: there is no node %q", name)
		}
	}
	return nil
}

// hasInsightAbout reports whether an insight involves a node.
func (s snapshot) hasInsightAbout(node string) bool {
	about := func(section updatev1beta1.Section) bool {
		return slices.ContainsFunc(section.UpdateInformers, func(of updatev1beta1.InformerInsights) bool {
			return slices.ContainsFunc(of.Insights, func(i updatev1beta1.Insight) bool { return isAbout(i, []string{node}) })
		})
	}
	status := &s.object.Status
	return status.ControlPlane != nil && about(status.ControlPlane.Section) ||
		slices.ContainsFunc(status.WorkerPools, func(p updatev1beta1.WorkerPoolStatus) bool { return about(p.Section) })
}

// isAbout reports whether an insight involves one of the nodes.
func isAbout(i updatev1beta1.Insight, nodes []string) bool {
	return slices.ContainsFunc(i.Scope.Resources, func(r updatev1beta1.ResourceReference) bool {
		return r.Kind == "Node" && slices.Contains(nodes, r.Name)
	})
}
