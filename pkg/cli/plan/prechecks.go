// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// preChecksOptions holds the flags of the command pre-checks.
type preChecksOptions struct {
	planRequest
	session.ChangeOptions

	format *session.Output
	// releases holds the values of --version. Several releases are compared.
	releases []string
	accept   []string
	reason   string
	details  bool
}

const (
	// defaultPlanWait is how long commands wait for an analysis.
	defaultPlanWait = 10 * time.Minute
	// defaultMaxAge is the maximum age of an analysis.
	defaultMaxAge = time.Hour
)

// NewPreChecksCommand returns the command that analyzes an update before it is started.
func NewPreChecksCommand(p *session.Session) *cobra.Command {
	o := &preChecksOptions{planRequest: planRequest{Session: p}}
	cmd := &cobra.Command{
		Use:   "pre-checks --version RELEASE",
		Short: "Check the risks of updating the cluster to a release, and accept them",
		Long: "Check the risks of updating the cluster to a release.\n\n" +
			"The command creates the release's UpdatePlan or requests a new analysis, waits for the result, and prints the risks.\n" +
			"Risks of level warning or higher must be fixed or accepted before the update can start. If the Update Status Controller\n" +
			"is not installed, the command runs the built-in checks itself, and risks cannot be accepted.\n\n" +
			"The exit code is 0 if the update can be started, 30 if action is required, and 40 if the analysis is incomplete.",
		Example: "  oc update pre-checks --version 4.20.8\n" +
			"  oc update pre-checks --version 4.20.8 --version 4.21.2\n" +
			"  oc update pre-checks --version 4.20.8 --accept\n" +
			"  oc update pre-checks --version 4.20.8 --accept pdb/shop/api-\n" +
			"  oc update pre-checks --version 4.20.8 --accept pdb/shop/api --reason \"the shop is closed tonight\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(o.accept, acceptAll) {
				return nil // the arguments are risks
			}
			return manager.NoArgs(cmd, args)
		},
		RunE: session.RunE(o),
	}
	o.format = session.OutputFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.releases, "version", nil, "release to check, for example 4.20.8; repeat the flag to compare releases")
	flags.StringSliceVar(&o.accept, "accept", nil, "accept the risk with this uid or uuid; append a hyphen (UID-) to withdraw the acceptance; may be repeated; without a value, accept all risks except critical ones")
	flags.Lookup("accept").NoOptDefVal = acceptAll
	flags.StringVar(&o.reason, "reason", "", "reason for accepting the risks; required for critical risks")
	flags.BoolVar(&o.refreshInformers, "refresh-informers", false, "request a new analysis, and let update informers update themselves first")
	flags.BoolVar(&o.details, "details", false, "also print accepted risks and descriptions")
	bindPlanFlags(cmd, &o.planRequest)
	o.Bind(cmd)
	return cmd
}

// bindPlanFlags adds the flags of commands that need an analysis.
func bindPlanFlags(cmd *cobra.Command, o *planRequest) {
	cmd.Flags().DurationVar(&o.wait, "wait", defaultPlanWait, "how long to wait for the analysis")
	cmd.Flags().StringVar(&o.namespace, "controller-namespace", session.ControllerNamespace, "namespace of the Update Status Controller")
	cmd.Flags().DurationVar(&o.maxAge, "max-age", defaultMaxAge, "maximum age of the analysis before it is repeated (up to 1h)")
}

// Complete treats the arguments as risks.
func (o *preChecksOptions) Complete(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		o.accept = append(slices.DeleteFunc(o.accept, func(id string) bool { return id == acceptAll }), args...)
	}
	return nil
}

// Validate checks the flags.
func (o *preChecksOptions) Validate() error {
	if err := o.format.Check(); err != nil {
		return err
	}
	for i := range max(len(o.releases), 1) {
		if i < len(o.releases) {
			o.release = o.releases[i]
		}
		if err := session.ValidateRelease("version", o.release); err != nil {
			return err
		}
	}
	if len(o.releases) > 1 && len(o.accept) > 0 {
		return session.UsageError("--version: the risks of one release can be accepted at a time")
	}
	if o.reason != "" && len(o.accept) == 0 {
		return session.UsageError("--reason: needs --accept")
	}
	if o.IsReplay() && len(o.accept) > 0 {
		return session.UsageError("--accept: a dump cannot be changed; leave out --replay")
	}
	if len(o.accept) > 0 {
		return o.Check(o.Session)
	}
	return nil
}

// Run prints the risks.
func (o *preChecksOptions) Run(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	return o.runPreChecks(ctx, cluster)
}

func (o *preChecksOptions) runPreChecks(ctx context.Context, cluster *session.Cluster) error {
	if len(o.releases) > 1 {
		return o.compareReleases(ctx, cluster)
	}
	if cluster.Client == nil {
		return o.printPlan(localPlan(ctx, cluster, o.release), cluster.Dump.Path)
	}
	plan, err := o.analyzedPlan(ctx, cluster)
	switch {
	case meta.IsNoMatchError(err) && len(o.accept) > 0:
		return fmt.Errorf("accepting risks needs the Update Status Controller: %w", err)
	case meta.IsNoMatchError(err):
		return o.printPlan(localPlan(ctx, cluster, o.release), "live reads; the Update Status Controller is not installed, so nothing can be accepted, and no update informer was asked")
	case err != nil:
		return err
	}
	switch {
	case len(o.accept) > 0:
		if plan, err = o.acceptInsights(ctx, cluster, plan); err != nil {
			return err
		}
	case o.format.IsText() && !bool(o.DryRun):
		defer recordReview(ctx, o.Session, cluster, plan)
	}
	return o.printPlan(plan, "")
}

// compareReleases prints the risks of several releases.
func (o *preChecksOptions) compareReleases(ctx context.Context, cluster *session.Cluster) error {
	list := &updatev1beta1.UpdatePlanList{}
	for _, release := range o.releases {
		request := o.planRequest
		request.release = release
		plan, err := request.planOf(ctx, cluster)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *plan)
	}
	code, now := session.ExitDone, o.Clock.Now()
	for i := range list.Items {
		if verdict := planVerdict(&list.Items[i], now); code == session.ExitDone || verdict == session.ExitActionRequired {
			code = verdict
		}
	}
	if !o.format.IsText() {
		if err := o.format.Print(o.Streams.Out, list); err != nil {
			return err
		}
		return session.ExitWith(code)
	}
	s := &plansScreen{Layout: screen.Layout{Width: o.Terminal.Columns()}, plans: list.Items, now: now, name: o.Name}
	if _, err := fmt.Fprint(o.Streams.Out, s.render()); err != nil {
		return err
	}
	return session.ExitWith(code)
}

// planOf returns the plan of a release. Without a controller, it uses the built-in checks.
func (o planRequest) planOf(ctx context.Context, cluster *session.Cluster) (*updatev1beta1.UpdatePlan, error) {
	if cluster.Client != nil {
		if plan, err := o.analyzedPlan(ctx, cluster); !meta.IsNoMatchError(err) {
			return plan, err
		}
	}
	return localPlan(ctx, cluster, o.release), nil
}

// localPlan computes a plan with the built-in checks only. It never allows starting the update.
func localPlan(ctx context.Context, c *session.Cluster, release string) *updatev1beta1.UpdatePlan {
	readers := checks.Readers{Reader: c, Live: c, Prometheus: c.Prometheus, LockNamespace: session.ControllerNamespace, Clock: c.Clock}
	facts := checks.Gather(ctx, checks.Plan, readers).With(checks.GatherPlan(ctx, readers))
	of := updatev1beta1.InformerInsights{Name: checks.InformerReadiness}
	for _, finding := range checks.Readiness(facts, release) {
		of.Insights = append(of.Insights, insight.FromFinding(checks.InformerReadiness, finding, facts.Now))
	}
	plan := &updatev1beta1.UpdatePlan{ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(release)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: release}}
	updateplan.Arrange(&plan.Status, []updatev1beta1.InformerInsights{of}, func(node string) string {
		for i := range facts.Nodes {
			if n := &facts.Nodes[i]; n.Name == node {
				return clusterstate.PoolOf(facts.Pools, n)
			}
		}
		return ""
	}, facts.Now)
	plan.Status.FromRelease = facts.Version.Current.Version
	updateplan.Settle(plan, updateplan.Insights(&plan.Status), updateplan.Analysis{
		Now: facts.Now, Current: facts.Version.Current.Version, NotAnUpdate: updateplan.NotAnUpdate(facts.Version, facts.Pools, release),
		Waiting: []string{updatev1beta1.SourceStatusController},
	})
	return plan
}

// printPlan prints a plan and returns its verdict as an exit code. source is empty if the controller
// published the plan.
func (o *preChecksOptions) printPlan(plan *updatev1beta1.UpdatePlan, source string) error {
	code := planVerdict(plan, o.Clock.Now())
	if !o.format.IsText() {
		if err := o.format.Print(o.Streams.Out, plan); err != nil {
			return err
		}
		return session.ExitWith(code)
	}
	s := &planScreen{
		Layout: screen.Layout{Width: o.Terminal.Columns()}, plan: plan, now: o.Clock.Now(), name: o.Name, details: o.details || o.format.IsWide(),
		source: source, replay: o.IsReplay(),
	}
	if _, err := fmt.Fprint(o.Streams.Out, s.render(code)); err != nil {
		return err
	}
	return session.ExitWith(code)
}

// planVerdict returns the exit code for a plan.
func planVerdict(plan *updatev1beta1.UpdatePlan, now time.Time) session.ExitCode {
	switch {
	case updateplan.IsStartable(plan, now):
		return session.ExitDone
	case startableReason(plan) == updatev1beta1.ReasonNotAnUpdate:
		return session.ExitActionRequired
	case len(updateplan.Unaccepted(updateplan.JudgePlan(plan, now))) > 0:
		return session.ExitActionRequired
	case !isComplete(plan):
		return session.ExitUnknown
	}
	return session.ExitActionRequired
}
