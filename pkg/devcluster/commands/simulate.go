// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/virtual"
	"github.com/managed-upgrade/managed-upgrade-operator/test/e2e/scenarios"
)

// simulateOptions are the options of the simulate command.
type simulateOptions struct {
	describe bool // print the history, the UpgradeConfigs, and suggestions
	cluster  clusterFlags
}

func simulate() *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate NAME|FILE",
		Short: "Run a scenario in virtual time: hours pass in seconds, without a control plane.",
		Long: "Run a scenario in virtual time, in one process and without a control plane, and print each step\n" +
			"with its virtual time. The same file runs on a dev cluster with \"devcluster scenario\". With\n" +
			"--speed=1 the simulated parts take as long as on a real cluster.",
		Args:              oneScenario,
		ValidArgsFunction: completeScenario,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), args[0])
		},
	}
	cmd.Flags().BoolVar(&o.describe, "describe", false, "print the history and the UpgradeConfigs in the end, and what to try next")
	o.cluster.bind(cmd.Flags())
	return cmd
}

// adjust applies the flags to the scenario. A different speed scales the time limit of the scenario
// accordingly.
func (o *simulateOptions) adjust(story *scenario.Scenario) error {
	const defaultWithin = 3 * time.Minute
	before := cmp.Or(story.Cluster.Speed, openshiftsim.DefaultSpeed)
	var err error
	if story.Cluster, err = o.cluster.applyTo(story.Cluster); err != nil {
		return err
	}
	within := float64(cmp.Or(time.Duration(story.Expect.Within), defaultWithin))
	after := cmp.Or(story.Cluster.Speed, openshiftsim.DefaultSpeed)
	story.Expect.Within = timescale.Duration(within * float64(before/after))
	return nil
}

func (o *simulateOptions) run(ctx context.Context, out io.Writer, name string) error {
	story, err := scenario.Load(scenarios.Files, name, o.adjust)
	if err != nil {
		return err
	}
	startTime := time.Now()
	world, err := virtual.New(story, cli.RunSimulated)
	if err != nil {
		return fmt.Errorf("%s: %w", story.Name, err)
	}
	defer world.Stop()
	p := &printer{out: out, now: world.Now}
	p.line("%s: %s", story.Name, story.Description)
	p.line("Simulating %s and the operator.", summary(story.Cluster))
	running, err := scenario.Start(ctx, story, world, scenario.RunOptions{Log: p, Watch: p.upgrade})
	if err != nil {
		return interrupted(ctx, err)
	}
	problems := running.Wait(ctx)
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if err := running.AwaitCleanup(ctx); err != nil {
		return interrupted(ctx, err)
	}
	p.line("")
	p.result(problems, world.Now().Sub(running.StartTime))
	p.line("That was virtual time; the simulation took %.1f s.", time.Since(startTime).Seconds())
	if o.describe {
		if err := describeSimulated(ctx, p, world); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return ErrUnexpected
	}
	return nil
}

// describeSimulated prints the output of commands that an on-call engineer would run, and
// suggestions.
func describeSimulated(ctx context.Context, p *printer, world *virtual.World) error {
	history, err := world.Command(ctx, func(time.Duration) bool { return false }, []string{"oc", "update", "history"})
	if err != nil {
		return err
	}
	p.line("\n$ oc update history\n%s", history.Printed)
	objects, err := world.List(ctx, scenario.Object{APIVersion: upgradev1alpha1.GroupVersion.String(), Kind: "UpgradeConfig"})
	if err != nil {
		return err
	}
	for _, object := range objects {
		p.line("$ oc describe upgrade %s -n %s", object.GetName(), object.GetNamespace())
		describeObject(p, object)
		p.line("")
	}
	for _, line := range []string{
		"What to try next:",
		"  bin/devcluster scenarios                   list upgrades that wait, fail, or are stuck",
		"  bin/devcluster simulate pdb-blocks-drain   watch one of them",
		"  make demo REAL=1                           upgrade a cluster with a real control plane",
	} {
		p.line("%s", line)
	}
	return nil
}
