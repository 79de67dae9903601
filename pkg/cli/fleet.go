// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/fleet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

const fleetDoc = "Reports and controls the upgrades of fleets of clusters. Connect to the hub of Open Cluster Management; each command\n" +
	"works on a ManagedClustersUpgrade of the namespace that --namespace or the context selects."

// fleetCommand reports and controls upgrades of fleets.
func (p *Program) fleetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Reports and controls the upgrades of fleets of clusters.", Long: fleetDoc, Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.fleetStatusCommand(), p.fleetClustersCommand(), p.fleetPlanCommand(), p.fleetStartCommand(),
		p.fleetChangeCommand("pause", "Starts no further cluster until the upgrade is resumed.",
			"Clusters whose upgrade is delivered continue; others wait.", pauseFleet),
		p.fleetChangeCommand("resume", "Continues an upgrade that is paused.", "", resumeFleet),
		p.fleetChangeCommand("cancel", "Starts no further cluster, for good.",
			"Clusters whose upgrade is delivered continue; others that have begun are withdrawn and count as failed. "+
				"An upgrade that is cancelled cannot be resumed.", cancelFleet),
		p.fleetChangeCommand("retry", "Upgrades the clusters that failed again, and continues a rollout that has stopped.",
			"Fix the cause first: see \"fleet status\" and \"fleet clusters --state Failed\".", retryFleet),
	)
	return cmd
}

// withFleetNames completes the names of ManagedClustersUpgrades.
func (p *Program) withFleetNames(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cluster, key, err := p.connectFleet("")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list fleetv1beta1.ManagedClustersUpgradeList
		if err := cluster.List(cmd.Context(), &list, client.InNamespace(key.Namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// connectFleet returns what the flags select, and the key of the upgrade with that name.
func (p *Program) connectFleet(name string) (*Cluster, client.ObjectKey, error) {
	cluster, err := p.connect()
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	namespace, _, err := p.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, client.ObjectKey{}, &kubeconfigError{err}
	}
	return cluster, client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// fleetPrinter returns the printer of screens about an upgrade.
func (p *Program) fleetPrinter(name string) *fleet.Printer {
	return &fleet.Printer{Width: p.Terminal.columns(), Command: func(verb string) string { return p.fleetCommandLine(verb, name) }}
}

// fleetCommandLine returns a command that a user may copy.
func (p *Program) fleetCommandLine(verb, name string) string {
	line := p.name + " fleet " + verb + " " + name
	if namespace := *p.config.Namespace; namespace != "" {
		line += " -n " + namespace
	}
	return line
}

// fleetExit returns the exit code of a state.
func fleetExit(state fleet.State) ExitCode {
	switch state {
	case fleet.Done:
		return ExitDone
	case fleet.Progressing:
		return ExitProgressing
	case fleet.Waiting:
		return ExitWaiting
	case fleet.ActionRequired:
		return ExitActionRequired
	default:
		return ExitUnknown
	}
}

// fleetStatusCommand prints how far an upgrade is.
func (p *Program) fleetStatusCommand() *cobra.Command {
	var watch bool
	var format *output
	cmd := p.withFleetNames(&cobra.Command{
		Use:   "status NAME",
		Short: "Reports how far the upgrade of a fleet is, what failed, and what to do.",
		Long: "Reports how far the upgrade of a fleet is, which clusters failed and why, and what to do. The counters are those that\n" +
			"the hub has published. The time that is left is estimated from the clusters that are complete. The exit code is the\n" +
			"verdict.",
		Example: "  oc update fleet status stores\n  oc update fleet status stores -w",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			switch {
			case watch && p.replay.dir != "":
				return usageError("--replay: a dump does not change; leave out --watch")
			case watch && !format.isText():
				return usageError("--watch: prints text only; leave out --output")
			}
			cluster, key, err := p.connectFleet(args[0])
			if err != nil {
				return err
			}
			return p.fleetStatus(cmd.Context(), cluster, key, format, watch)
		},
	})
	format = outputFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print the status again whenever it changes, until interrupted")
	return cmd
}

// fleetStatus prints the status, again and again if it is watched.
func (p *Program) fleetStatus(ctx context.Context, cluster *Cluster, key client.ObjectKey, format *output, watch bool) error {
	s, err := fleet.Read(ctx, cluster, key, cluster.Clock.Now())
	if err != nil {
		return err
	}
	verdict := exitWith(fleetExit(s.Verdict().State))
	if !format.isText() {
		s.Upgrade.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
		return errors.Join(format.print(p.Streams.Out, s.Upgrade), verdict)
	}
	if !watch {
		_, err := fmt.Fprint(p.Streams.Out, p.fleetPrinter(key.Name).Status(s))
		return errors.Join(err, verdict)
	}
	return p.watchFleet(ctx, cluster, key, s)
}

// watchFleet prints the status until the user interrupts it. A terminal is redrawn each time; elsewhere,
// the status is appended if it has changed, other than by time.
func (p *Program) watchFleet(ctx context.Context, cluster *Cluster, key client.ObjectKey, s *fleet.Snapshot) error {
	last := ""
	show := func(screen, compared string) error {
		if !p.Terminal.Interactive && compared == last {
			return nil
		}
		last = compared
		return p.show(screen)
	}
	for {
		screen := p.fleetPrinter(key.Name).Status(s)
		_, body, _ := strings.Cut(screen, "\n") // the first line contains the time
		if err := show(screen, s.Verdict().Text+body); err != nil {
			return err
		}
		next := p.nextFleet(ctx, cluster, key, func(message string) error { return show(message, message) })
		if next == nil {
			return exitWith(fleetExit(s.Verdict().State))
		}
		s = next
	}
}

// nextFleet returns the next snapshot that can be read, and reports errors meanwhile; nil means that the
// user has interrupted it.
func (p *Program) nextFleet(ctx context.Context, cluster *Cluster, key client.ObjectKey, report func(string) error) *fleet.Snapshot {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(pollInterval):
		}
		s, err := fleet.Read(ctx, cluster, key, cluster.Clock.Now())
		if err == nil {
			return s
		}
		if ctx.Err() != nil || report(p.explain(err)+"\n") != nil {
			return nil
		}
	}
}

// fleetStates are the states by which clusters are selected.
var fleetStates = []string{
	string(rollout.NotStarted), string(rollout.Initialized), string(rollout.PartialUpgrade), string(rollout.Complete), string(rollout.Failed),
}

// fleetClustersCommand lists the clusters of an upgrade.
func (p *Program) fleetClustersCommand() *cobra.Command {
	var states []string
	var format *output
	cmd := p.withFleetNames(&cobra.Command{
		Use:   "clusters NAME",
		Short: "Lists the clusters of the upgrade of a fleet in the order in which they start.",
		Long: "Lists the clusters of the upgrade of a fleet in the order in which they start. With --output, it prints their\n" +
			"ClusterUpgradeRuns; clusters that have not started have none.",
		Example: "  oc update fleet clusters stores\n  oc update fleet clusters stores --state Failed",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			for _, state := range states {
				if !slices.Contains(fleetStates, state) {
					return usageError("--state: is %q, must be one of %s", state, strings.Join(fleetStates, ", "))
				}
			}
			return p.fleetClusters(cmd.Context(), args[0], states, format)
		},
	})
	format = outputFlags(cmd)
	cmd.Flags().StringSliceVar(&states, "state", nil, "list the clusters in this state only: "+strings.Join(fleetStates, ", ")+"; may be repeated")
	complete := cobra.FixedCompletions(fleetStates, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("state", complete); err != nil {
		panic(err) // the flag was added above
	}
	return cmd
}

func (p *Program) fleetClusters(ctx context.Context, name string, states []string, format *output) error {
	cluster, key, err := p.connectFleet(name)
	if err != nil {
		return err
	}
	s, err := fleet.Read(ctx, cluster, key, cluster.Clock.Now())
	if err != nil {
		return err
	}
	if !format.isText() {
		return format.print(p.Streams.Out, fleet.Runs(s, states))
	}
	if s.Unreadable != nil {
		fmt.Fprintf(p.Streams.ErrOut, "%s: warning: clusters that have not started are missing: %s\n", p.name, p.explain(s.Unreadable))
	}
	header, rows := fleet.Clusters(s, states)
	if len(rows) == 0 {
		_, err := fmt.Fprintln(p.Streams.Out, "No clusters found.")
		return err
	}
	return printTable(p.Streams.Out, header, rows)
}

// fleetPlanCommand prints what an upgrade would do.
func (p *Program) fleetPlanCommand() *cobra.Command {
	var format *output
	cmd := p.withFleetNames(&cobra.Command{
		Use:   "plan NAME",
		Short: "Prints in which order the clusters of a fleet would be upgraded, and which would not.",
		Long: "Prints in which order the clusters of a fleet would be upgraded, which need no upgrade, and which would not be\n" +
			"upgraded and why. The hub decides by the same code. It checks the clusters while spec.dryRun is true.",
		Example: "  oc update fleet start -f stores.yaml --dry-run\n  oc update fleet plan stores",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := format.check(); err != nil {
				return err
			}
			cluster, key, err := p.connectFleet(args[0])
			if err != nil {
				return err
			}
			return p.fleetPlan(cmd.Context(), cluster, key, format)
		},
	})
	format = outputFlags(cmd)
	return cmd
}

func (p *Program) fleetPlan(ctx context.Context, cluster *Cluster, key client.ObjectKey, format *output) error {
	s, err := fleet.Read(ctx, cluster, key, cluster.Clock.Now())
	if err != nil {
		return err
	}
	if s.Unreadable != nil {
		return s.Unreadable
	}
	forecast := s.Forecast()
	verdict := exitWith(fleetExit(forecast.State(s)))
	if !format.isText() {
		s.Upgrade.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
		return errors.Join(format.print(p.Streams.Out, s.Upgrade), verdict)
	}
	_, err = fmt.Fprint(p.Streams.Out, p.fleetPrinter(key.Name).Plan(s))
	return errors.Join(err, verdict)
}
