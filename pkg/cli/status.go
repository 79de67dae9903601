// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// statusOptions are the flags of the command status.
type statusOptions struct {
	format    *output
	details   bool
	nodes     []string
	selector  string
	wait      time.Duration
	watch     bool
	namespace string
}

const (
	// defaultWait is how long --wait waits without a value.
	defaultWait = 2 * time.Minute
	// pollInterval is the time between two reads of --wait and -w.
	pollInterval = 5 * time.Second
	// livePollInterval is the time between two reads of -w without the Update Status Controller, each
	// of which reads the whole cluster.
	livePollInterval = 30 * time.Second
)

// statusCommand prints the status of the update in progress.
func (p *Program) statusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Reports whether the cluster is being updated, whether that makes progress, and what to do.",
		Long:  statusDoc,
		Example: "  oc update status\n  oc update status --details\n  oc update status --node worker-3\n" +
			"  oc update status --replay must-gather.local.123 --now 2026-11-22T14:00:00Z",
		Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.status(cmd.Context(), o) },
	}
	o.format = outputFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.details, "details", false, "also print all insights with their descriptions, all causes, and the sources")
	flags.StringSliceVar(&o.nodes, "node", nil, "also print the insights about this node; may be repeated")
	flags.StringVarP(&o.selector, "selector", "l", "", "also print the insights about the nodes with these labels, for example zone=a")
	flags.DurationVar(&o.wait, "wait", 0, "wait up to this long for update informers that have not answered yet")
	flags.Lookup("wait").NoOptDefVal = defaultWait.String()
	flags.BoolVarP(&o.watch, "watch", "w", false, "print the status again whenever it changes, until interrupted")
	flags.StringVar(&o.namespace, "controller-namespace", controllerNamespace, "namespace of the Update Status Controller")
	return cmd
}

const statusDoc = "Reports whether the cluster is being updated, whether the update progresses, waits, or is stuck, on what, for how\n" +
	"long, and what to do.\n\n" +
	"The status is that of the Update Status Controller. If the controller is not installed, or does not confirm its\n" +
	"status, the status is computed from the objects of the cluster, and the last line reports what is then missing.\n" +
	"The exit code is the verdict."

// validate checks the flags before anything is read.
func (o *statusOptions) validate(replay bool) error {
	if err := o.format.check(); err != nil {
		return err
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return usageError("--selector: is %q, must be labels such as zone=a", o.selector)
	}
	if replay && (o.watch || o.wait > 0) {
		return usageError("--replay: a dump does not change; leave out --watch and --wait")
	}
	if o.watch && !o.format.isText() {
		return usageError("--watch: prints text only; leave out --output")
	}
	return nil
}

func (p *Program) status(ctx context.Context, o *statusOptions) error {
	if err := o.validate(p.replay.dir != ""); err != nil {
		return err
	}
	cluster, err := p.connect()
	if err != nil {
		return err
	}
	return p.report(ctx, cluster, o)
}

// report prints the status of a cluster, and returns its verdict.
func (p *Program) report(ctx context.Context, cluster *Cluster, o *statusOptions) error {
	s, err := p.await(ctx, cluster, o)
	if err != nil {
		return err
	}
	if o.watch {
		return p.watch(ctx, cluster, o, s)
	}
	if !o.format.isText() {
		if err := o.format.print(p.Streams.Out, s.object); err != nil {
			return err
		}
		return exitWith(verdict(s))
	}
	printed, err := p.screen(ctx, cluster, o, s)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(p.Streams.Out, printed); err != nil {
		return err
	}
	return exitWith(verdict(s))
}

// await reads the status, again while --wait allows it and an informer has not answered yet.
func (p *Program) await(ctx context.Context, cluster *Cluster, o *statusOptions) (snapshot, error) {
	end := p.Clock.Now().Add(o.wait)
	for {
		s, err := cluster.readStatus(ctx, o.namespace, nil)
		if err != nil || !s.origin.published || !waitsForInformers(s) || !p.Clock.Now().Before(end) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, nil
		case <-p.Clock.After(pollInterval):
		}
	}
}

// waitsForInformers reports whether an informer is a source that is not current.
func waitsForInformers(s snapshot) bool {
	return slices.ContainsFunc(s.object.Status.Assessment.Sources, func(source updatev1beta1.Source) bool {
		return !source.Current && strings.HasPrefix(source.Name, updatev1beta1.SourceInformerPrefix)
	})
}

// verdict returns the exit code of a status.
func verdict(s snapshot) ExitCode {
	assessment := s.object.Status.Assessment
	switch {
	case assessment == nil:
		return ExitUnknown
	case assessment.State == updatev1beta1.StateStuck, assessment.ActionRequired:
		return ExitActionRequired
	case assessment.State == updatev1beta1.StateIdle:
		return ExitDone
	case assessment.State == updatev1beta1.StateProgressing:
		return ExitProgressing
	case assessment.State == updatev1beta1.StateWaiting:
		return ExitWaiting
	default:
		return ExitUnknown
	}
}

// screen returns the text of a status, with the details that the flags select.
func (p *Program) screen(ctx context.Context, cluster *Cluster, o *statusOptions, s snapshot) (string, error) {
	newScreen := func() *screen { return p.newScreen(s, o.details || o.format.isWide()) }
	parts := []string{newScreen().render()}
	word, c := headWord(s.object.Status.Assessment.State)
	parts[0] = p.paint(c, word) + strings.TrimPrefix(parts[0], word)
	if len(o.nodes) > 0 || o.selector != "" {
		nodes, err := o.selectedNodes(ctx, cluster)
		if err != nil {
			return "", err
		}
		parts = append(parts, newScreen().renderDetails(func(i updatev1beta1.Insight) bool { return isAbout(i, nodes) }))
	} else if o.details {
		parts = append(parts, newScreen().renderDetails(nil))
	}
	if o.details {
		parts = append(parts, newScreen().renderSources())
	}
	return strings.Join(parts, "\n"), nil
}

func (p *Program) newScreen(s snapshot, details bool) *screen {
	return &screen{
		layout: layout{width: p.Terminal.columns()}, status: s.object.Status, assessment: *s.object.Status.Assessment,
		origin: s.origin, now: s.now, name: p.name, details: details,
	}
}

// selectedNodes returns the names of the nodes that the flags select.
func (o *statusOptions) selectedNodes(ctx context.Context, cluster *Cluster) ([]string, error) {
	if o.selector == "" {
		return o.nodes, nil
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return nil, usageError("--selector: %w", err)
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

// isAbout reports whether an insight involves one of the nodes.
func isAbout(i updatev1beta1.Insight, nodes []string) bool {
	return slices.ContainsFunc(i.Scope.Resources, func(r updatev1beta1.ResourceReference) bool {
		return r.Kind == "Node" && slices.Contains(nodes, r.Name)
	})
}
