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

// show is how a story is played.
type show struct {
	name     string
	keep     bool // leave the cluster up in the end
	describe bool // print what kubectl describe shows in the end
	like     shape
}

func demo(where *place) *cobra.Command {
	s := show{describe: true}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a cluster and the operator, upgrade, and print each step.",
		Args:  commandline.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.run(cmd.Context(), cmd.OutOrStdout(), where) },
	}
	cmd.Flags().StringVar(&s.name, "scenario", "healthy-z", "name or file of the scenario to play")
	cmd.Flags().BoolVar(&s.keep, "keep", false, "leave the cluster up in the end, until Ctrl-C")
	s.like.bind(cmd.Flags())
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

func play(where *place) *cobra.Command {
	s := show{}
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
			s.name = args[0]
			return s.run(cmd.Context(), cmd.OutOrStdout(), where)
		},
	}
	cmd.Flags().BoolVar(&s.keep, "keep", false, "leave the cluster up in the end, until Ctrl-C")
	s.like.bind(cmd.Flags())
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

func (s *show) run(ctx context.Context, out io.Writer, where *place) (err error) {
	if err := where.complete(); err != nil {
		return err
	}
	story, err := scenario.Load(scenarios.Files, s.name, func(story *scenario.Scenario) (err error) {
		story.Cluster, err = s.like.over(story.Cluster)
		return err
	})
	if err != nil {
		return err
	}
	if s.describe {
		if err := controlplane.RequirePrograms(where.bin, "kubectl"); err != nil {
			return err
		}
	}
	p := &printer{out: out}
	p.line("%s: %s", story.Name, story.Description)
	p.line("Starting %s and the operator.", summary(story.Cluster))
	began := time.Now()
	running, err := scenario.Start(ctx, story, scenario.Options{
		BinDir: where.bin, Dir: where.dir, Repository: where.repository, Tell: p, Watch: p.upgradeConfig,
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
			err = clearState(where.dir)
		}
	}()
	if err := running.Cluster.Kubeconfig(where.kubeconfig()); err != nil {
		return err
	}
	problems := running.Wait(ctx)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if s.describe {
		p.line("")
		if err := describe(ctx, p, where); err != nil {
			return err
		}
	}
	p.line("")
	p.verdict(problems, time.Since(began))
	if s.keep {
		p.line("The cluster stays up until Ctrl-C: export KUBECONFIG=%s", where.kubeconfig())
		<-ctx.Done()
	}
	if len(problems) > 0 {
		return ErrUnexpected
	}
	return nil
}

// describe prints what people see of the UpgradeConfigs.
func describe(ctx context.Context, p *printer, where *place) error {
	p.line("$ kubectl describe upgradeconfig")
	kubectl := exec.CommandContext(ctx, filepath.Join(where.bin, "kubectl"), //nolint:gosec // the kubectl of the programs' folder
		"--kubeconfig", where.kubeconfig(), "--namespace", devcluster.OperatorNamespace, "describe", "upgradeconfig")
	kubectl.Stdout, kubectl.Stderr = p, p
	if err := kubectl.Run(); err != nil {
		return fmt.Errorf("describing the UpgradeConfigs: %w", err)
	}
	return nil
}
