// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/binary"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// demoOptions are the options of the demo and scenario commands.
type demoOptions struct {
	name     string
	keep     bool // keep the cluster running at the end
	describe bool // print the output of kubectl describe at the end
	cluster  clusterFlags
}

func demo(opts *globalOptions) *cobra.Command {
	o := demoOptions{describe: true}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Upgrade a cluster, print each step, and describe the result.",
		Args:  manager.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout(), opts) },
	}
	cmd.Flags().StringVar(&o.name, "scenario", "healthy-z", "name or file of the scenario")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep the cluster up in the end, until Ctrl-C")
	o.cluster.bind(cmd.Flags())
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("scenario", completeScenario)) // fails only if the flag does not exist
	return cmd
}

// completeScenario completes the names of scenarios. The shell also completes file names.
func completeScenario(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := scenario.Names(scenarios.Files)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveDefault
}

// oneScenario requires exactly one argument.
func oneScenario(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("there are %d arguments, must be one: the name of a scenario, as \"devcluster scenarios\" lists them, or a file", len(args))
	}
	return nil
}

func scenarioCommand(opts *globalOptions) *cobra.Command {
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:               "scenario NAME|FILE",
		Short:             "Run a scenario, and report whether it ends as expected.",
		Args:              oneScenario,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), cmd.OutOrStdout(), opts)
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "keep the cluster up in the end, until Ctrl-C")
	o.cluster.bind(cmd.Flags())
	return cmd
}

func scenarioNames() *cobra.Command {
	return &cobra.Command{
		Use:   "scenarios",
		Short: "List the scenarios.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := scenario.Names(scenarios.Files)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, name := range names {
				story, err := scenario.Load(scenarios.Files, name)
				if err != nil {
					return err
				}
				fmt.Fprintf(table, "%s\t%s\n", name, story.Description)
			}
			return table.Flush()
		},
	}
}

func (o *demoOptions) run(ctx context.Context, out io.Writer, opts *globalOptions) (err error) {
	if err := opts.complete(); err != nil {
		return err
	}
	story, err := scenario.Load(scenarios.Files, o.name, func(story *scenario.Scenario) (err error) {
		story.Cluster, err = o.cluster.applyTo(story.Cluster)
		return err
	})
	if err != nil {
		return err
	}
	if o.describe {
		if err := controlplane.RequirePrograms(opts.bin, "kubectl"); err != nil {
			return err
		}
	}
	p := &printer{out: out, now: time.Now}
	p.line("%s: %s", story.Name, story.Description)
	p.line("Starting %s and the operator.", summary(story.Cluster))
	world, err := binary.New(ctx, story, binary.WorldOptions{BinDir: opts.bin, Dir: opts.dir, Repository: opts.repository})
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() {
		err = errors.Join(err, world.Stop())
		if err == nil { // the logs explain an error
			err = clearState(opts.dir)
		}
	}()
	return o.follow(ctx, p, opts, story, world)
}

// interrupted returns ErrInterrupted if the context has ended, and err otherwise.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	return err
}

// follow runs the scenario on a cluster and prints its progress.
func (o *demoOptions) follow(ctx context.Context, p *printer, opts *globalOptions, story *scenario.Scenario, world *binary.World) error {
	startTime := time.Now()
	stopProgress := p.startProgress(ctx)
	defer stopProgress()
	running, err := scenario.Start(ctx, story, world, scenario.RunOptions{Log: p, Watch: p.upgrade})
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := world.Cluster.Kubeconfig(opts.kubeconfig()); err != nil {
		return err
	}
	problems := running.Wait(ctx)
	if o.describe {
		err := running.AwaitCleanup(ctx)
		stopProgress()
		if err == nil {
			err = describe(ctx, p, opts, story)
		}
		if err != nil {
			return interrupted(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	p.line("")
	p.result(problems, time.Since(startTime))
	if o.keep {
		stopProgress()
		p.keep(opts)
		<-ctx.Done()
	}
	if len(problems) > 0 {
		return ErrUnexpected
	}
	return nil
}

// keep prints suggestions for a cluster that stays up.
func (p *printer) keep(opts *globalOptions) {
	for _, line := range []string{
		"The cluster stays up until Ctrl-C. What to try next:",
		"  export KUBECONFIG=" + opts.kubeconfig(),
		"  export PATH=" + opts.bin + ":$PATH",
		"  kubectl get upgrade,maintenance -A",
		"  kubectl get clusterversion,clusteroperators,machineconfigpools,nodes",
		"  kubectl get events -n " + devcluster.OperatorNamespace,
		"  kubectl delete upgrade -n " + devcluster.OperatorNamespace + " --all",
		"Logs are in " + filepath.Join(opts.dir, "logs") + ".",
	} {
		p.line("%s", line)
	}
}

// describe prints the upgrades with "kubectl describe". There are two kinds named UpgradeConfig, so
// kubectl needs the API group.
func describe(ctx context.Context, p *printer, opts *globalOptions, story *scenario.Scenario) error {
	if len(story.UpgradeConfigs) > 0 {
		if err := p.kubectl(ctx, opts, "describe", "upgradeconfigs.upgrade.managed.openshift.io"); err != nil {
			return err
		}
	}
	if len(story.Maintenance) == 0 {
		return nil
	}
	if err := p.kubectl(ctx, opts, "get", "maintenance"); err != nil {
		return err
	}
	return p.kubectl(ctx, opts, "describe", "upgradejobs")
}

// kubectl prints the output of kubectl in the operator's namespace.
func (p *printer) kubectl(ctx context.Context, opts *globalOptions, verb, kinds string) error {
	p.line("\n$ kubectl %s %s -n %s", verb, kinds, devcluster.OperatorNamespace)
	kubectl := exec.CommandContext(ctx, filepath.Join(opts.bin, "kubectl"), //nolint:gosec // the kubectl of the programs' folder
		"--kubeconfig", opts.kubeconfig(), "--namespace", devcluster.OperatorNamespace, verb, kinds)
	kubectl.Stdout, kubectl.Stderr = p, p
	if err := kubectl.Run(); err != nil {
		return fmt.Errorf("printing the upgrades: %w", err)
	}
	return nil
}
