// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// preChecksOptions are the flags of the command pre-checks.
type preChecksOptions struct {
	planRequest

	format  *output
	accept  []string
	reason  string
	details bool
}

const (
	// defaultPlanWait is how long commands wait for an analysis.
	defaultPlanWait = 10 * time.Minute
	// defaultMaxAge is how old an analysis may be.
	defaultMaxAge = time.Hour
)

// preChecksCommand analyzes an update before it is started.
func (p *Program) preChecksCommand() *cobra.Command {
	o := &preChecksOptions{}
	cmd := &cobra.Command{
		Use:   "pre-checks --version RELEASE",
		Short: "Finds out what would go wrong if the cluster were updated to a release, and accepts risks.",
		Long: "Finds out what would go wrong if the cluster were updated to a release.\n\n" +
			"It creates the UpdatePlan of the release or requests another analysis, waits for it, and prints the risks. Each risk\n" +
			"of level warning or above is to be fixed or accepted before the update may be started. Without the Update Status\n" +
			"Controller, the checks are made from live reads, and nothing can be accepted.\n\n" +
			"The exit code is 0 if the update may be started, 30 if a person must act, and 40 if the analysis is not complete.",
		Example: "  oc update pre-checks --version 4.20.8\n" +
			"  oc update pre-checks --version 4.20.8 --accept pdb/shop/api --reason \"the shop is closed tonight\"",
		Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.preChecks(cmd.Context(), o) },
	}
	o.format = outputFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.release, "version", "", "release to which the cluster would be updated, for example 4.20.8")
	flags.StringSliceVar(&o.accept, "accept", nil, "accept the risk with this uid or uuid; may be repeated")
	flags.StringVar(&o.reason, "reason", "", "why the risks are accepted; required for critical ones")
	flags.BoolVar(&o.refreshInformers, "refresh-informers", false, "request another analysis, for which update informers may update themselves")
	flags.BoolVar(&o.details, "details", false, "also print the risks that are accepted, and descriptions")
	bindPlanFlags(cmd, &o.planRequest)
	return cmd
}

// bindPlanFlags adds the flags of commands that need an analysis.
func bindPlanFlags(cmd *cobra.Command, o *planRequest) {
	cmd.Flags().DurationVar(&o.wait, "wait", defaultPlanWait, "how long to wait for the analysis")
	cmd.Flags().DurationVar(&o.maxAge, "max-age", defaultMaxAge, "age from which on another analysis is requested, at most 1h")
}

// validate checks the flags before anything is read.
func (o *planRequest) validate(flag string) error {
	if o.release == "" {
		return usageError("--%s: is required, for example --%s 4.20.8", flag, flag)
	}
	if err := clusterstate.ValidateVersion(o.release); err != nil {
		return usageError("--%s: is %q, must be a release such as 4.20.8", flag, o.release)
	}
	return nil
}

func (p *Program) preChecks(ctx context.Context, o *preChecksOptions) error {
	if err := o.format.check(); err != nil {
		return err
	}
	if err := o.validate("version"); err != nil {
		return err
	}
	if o.reason != "" && len(o.accept) == 0 {
		return usageError("--reason: needs --accept")
	}
	if p.replay.dir != "" && len(o.accept) > 0 {
		return usageError("--accept: a dump cannot be changed; leave out --replay")
	}
	cluster, err := p.connect()
	if err != nil {
		return err
	}
	return p.runPreChecks(ctx, cluster, o)
}

func (p *Program) runPreChecks(ctx context.Context, cluster *Cluster, o *preChecksOptions) error {
	if cluster.Client == nil {
		return p.printPlan(o, cluster.localPlan(ctx, o.release), cluster.dump.path)
	}
	plan, err := p.analyzedPlan(ctx, cluster, o.planRequest)
	switch {
	case meta.IsNoMatchError(err) && len(o.accept) > 0:
		return fmt.Errorf("accepting risks needs the Update Status Controller: %w", err)
	case meta.IsNoMatchError(err):
		return p.printPlan(o, cluster.localPlan(ctx, o.release), "live reads; the Update Status Controller is not installed, so nothing can be accepted, and no update informer was asked")
	case err != nil:
		return err
	}
	if len(o.accept) > 0 {
		if plan, err = p.acceptInsights(ctx, cluster, plan, o.accept, o.reason); err != nil {
			return err
		}
	}
	return p.printPlan(o, plan, "")
}

// localPlan returns a plan that is computed by the built-in checks alone. It is never startable.
func (c *Cluster) localPlan(ctx context.Context, release string) *updatev1beta1.UpdatePlan {
	facts := informers.Gather(ctx, informers.Readers{Reader: c, Live: c, Prometheus: c.Prometheus, Clock: c.Clock, Always: true})
	extra := informers.GatherPlan(ctx, informers.PlanReaders{Live: c, LockNamespace: controllerNamespace})
	of := updatev1beta1.InformerInsights{Name: informers.NameReadiness}
	for _, finding := range informers.Readiness(facts, extra, release) {
		of.Insights = append(of.Insights, insight.FromFinding(informers.NameReadiness, finding, facts.Now))
	}
	plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: release}}
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{of}, func(node string) string {
		for _, n := range facts.Nodes.All() {
			if n.Name == node {
				return clusterstate.PoolOf(facts.Pools, n)
			}
		}
		return ""
	}, facts.Now)
	plan.Status.FromRelease = facts.Version.Current.Version
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{
		Now: facts.Now, Current: facts.Version.Current.Version, NotAnUpdate: updateplan.NotAnUpdate(facts.Version, release),
		Waiting: []string{updatev1beta1.SourceStatusController},
	})
	return plan
}

// printPlan prints a plan, and returns its verdict. The source is empty for a plan of the
// controller.
func (p *Program) printPlan(o *preChecksOptions, plan *updatev1beta1.UpdatePlan, source string) error {
	code := planVerdict(plan, p.Clock.Now())
	if !o.format.isText() {
		if err := o.format.print(p.Streams.Out, plan); err != nil {
			return err
		}
		return exitWith(code)
	}
	s := &planScreen{
		layout: layout{width: p.Terminal.columns()}, plan: plan, now: p.Clock.Now(), name: p.name, details: o.details || o.format.isWide(), source: source,
	}
	if _, err := fmt.Fprint(p.Streams.Out, s.render(code)); err != nil {
		return err
	}
	return exitWith(code)
}

// planVerdict returns the exit code of a plan.
func planVerdict(plan *updatev1beta1.UpdatePlan, now time.Time) ExitCode {
	switch {
	case updateplan.IsStartable(plan, now):
		return ExitDone
	case startableReason(plan) == updatev1beta1.ReasonNotAnUpdate:
		return ExitActionRequired
	case len(updateplan.Unaccepted(updateplan.JudgePlan(plan, now))) > 0:
		return ExitActionRequired
	case !isComplete(plan):
		return ExitUnknown
	}
	return ExitActionRequired
}
