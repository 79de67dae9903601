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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/commandline"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// demoOptions is how a story is played.
type demoOptions struct {
	name     string
	keep     bool // leave the cluster up in the end
	describe bool // print what kubectl describe shows in the end
	cluster  clusterFlags
}

func demo(opts *globalOptions) *cobra.Command {
	o := demoOptions{describe: true}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a cluster and the operator, upgrade, and print each step.",
		Args:  commandline.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout(), opts) },
	}
	cmd.Flags().StringVar(&o.name, "scenario", "healthy-z", "name or file of the scenario to play")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the cluster up in the end, until Ctrl-C")
	o.cluster.bind(cmd.Flags())
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("scenario", completeScenario)) // it fails only if there is no such flag
	return cmd
}

// completeScenario names the scenarios to a shell, which completes the names of files, too.
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

func scenarioCommand(opts *globalOptions) *cobra.Command {
	o := demoOptions{}
	cmd := &cobra.Command{
		Use:   "scenario NAME|FILE",
		Short: "Play a scenario, and say whether it ends as expected.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("there are %d arguments, must be one: the name of a scenario, as \"devcluster scenarios\" lists them, or a file", len(args))
			}
			return nil
		},
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), cmd.OutOrStdout(), opts)
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the cluster up in the end, until Ctrl-C")
	o.cluster.bind(cmd.Flags())
	return cmd
}

func scenarioNames() *cobra.Command {
	return &cobra.Command{
		Use:   "scenarios",
		Short: "List the scenarios.",
		Args:  commandline.NoArgs,
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
	p := &printer{out: out}
	p.line("%s: %s", story.Name, story.Description)
	p.line("Starting %s and the operator.", summary(story.Cluster))
	startTime := time.Now()
	running, err := scenario.Start(ctx, story, scenario.Options{
		BinDir: opts.bin, Dir: opts.dir, Repository: opts.repository, Log: p, Watch: p.upgradeConfig,
	})
	if err != nil && ctx.Err() != nil {
		return ErrInterrupted
	}
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, running.Stop())
		if err == nil { // what would tell of a failure is of no use then
			err = clearState(opts.dir)
		}
	}()
	if err := running.Cluster.Kubeconfig(opts.kubeconfig()); err != nil {
		return err
	}
	problems := running.Wait(ctx)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if o.describe {
		p.line("")
		if err := describe(ctx, p, opts); err != nil {
			return err
		}
	}
	p.line("")
	p.result(problems, time.Since(startTime))
	if o.keep {
		p.line("The cluster stays up until Ctrl-C: export KUBECONFIG=%s", opts.kubeconfig())
		<-ctx.Done()
	}
	if len(problems) > 0 {
		return ErrUnexpected
	}
	return nil
}

// describe prints what people see of the UpgradeConfigs.
func describe(ctx context.Context, p *printer, opts *globalOptions) error {
	p.line("$ kubectl describe upgradeconfig")
	kubectl := exec.CommandContext(ctx, filepath.Join(opts.bin, "kubectl"), //nolint:gosec // the kubectl of the programs' folder
		"--kubeconfig", opts.kubeconfig(), "--namespace", devcluster.OperatorNamespace, "describe", "upgradeconfig")
	kubectl.Stdout, kubectl.Stderr = p, p
	if err := kubectl.Run(); err != nil {
		return fmt.Errorf("describing the UpgradeConfigs: %w", err)
	}
	return nil
}
