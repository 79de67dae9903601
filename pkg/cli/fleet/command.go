// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

const fleetDoc = "Show and control upgrades of fleets of clusters. The context must be an Open Cluster Management hub. All commands work on\n" +
	"a ManagedClustersUpgrade in the namespace given by --namespace or the context."

// NewCommand returns the command with the subcommands for fleet upgrades.
func NewCommand(p *session.Session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "fleet", Short: "Show and control upgrades of fleets of clusters", Long: fleetDoc, Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		statusCommand(p), clustersCommand(p), reportCommand(p), planCommand(p), createCommand(p), startCommand(p),
		changeCommand(p, "pause", "Pause a fleet upgrade",
			"No further clusters start until the upgrade is resumed. Clusters whose upgrade is already delivered continue; others wait.", pauseFleet),
		changeCommand(p, "resume", "Resume a paused fleet upgrade", "", resumeFleet),
		changeCommand(p, "cancel", "Cancel a fleet upgrade",
			"No further clusters start. Clusters whose upgrade is already delivered continue.\n"+
				"Other clusters that have started are withdrawn and count as failed. A canceled upgrade cannot be resumed.", cancelFleet),
		changeCommand(p, "retry", "Retry failed clusters and resume a stopped rollout",
			"Fix the cause first. To find it, run \"fleet status\" and \"fleet clusters --state Failed\".", retryFleet),
	)
	return cmd
}

// withFleetNames completes the names of ManagedClustersUpgrades.
func withFleetNames(p *session.Session, cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = session.First(p.Completion(func(cmd *cobra.Command, cluster *session.Cluster) []string {
		namespace, _, err := p.Namespace()
		if err != nil {
			return nil
		}
		var list fleetv1beta1.ManagedClustersUpgradeList
		if err := cluster.List(cmd.Context(), &list, client.InNamespace(namespace)); err != nil {
			return nil
		}
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		return names
	}))
	return cmd
}

// upgradeOptions holds the options that all commands about a fleet upgrade share.
type upgradeOptions struct {
	*session.Session

	upgrade string // of the upgrade
}

// Complete takes the name of the upgrade from the argument.
func (o *upgradeOptions) Complete(_ *cobra.Command, args []string) error {
	o.upgrade = args[0]
	return nil
}

// connectFleet returns the cluster selected by flags and the key of the upgrade.
func (o *upgradeOptions) connectFleet() (*session.Cluster, client.ObjectKey, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	namespace, _, err := o.Namespace()
	return cluster, client.ObjectKey{Namespace: namespace, Name: o.upgrade}, err
}

// read returns the cluster and a snapshot of the upgrade.
func (o *upgradeOptions) read(ctx context.Context) (*session.Cluster, *Snapshot, error) {
	cluster, key, err := o.connectFleet()
	if err != nil {
		return nil, nil, err
	}
	s, err := Read(ctx, cluster, key, cluster.Clock.Now())
	return cluster, s, err
}

// fleetPrinter returns the printer for an upgrade.
func fleetPrinter(p *session.Session, name string) *Printer {
	return &Printer{Width: p.Terminal.Columns(), Command: func(verb string) string { return fleetCommandLine(p, verb, name) }}
}

// fleetCommandLine returns a command line that users may copy.
func fleetCommandLine(p *session.Session, verb, name string) string {
	line := p.Name + " fleet " + verb + " " + name
	if namespace := p.NamespaceFlag(); namespace != "" {
		line += " -n " + namespace
	}
	return line
}

// fleetExit returns the exit code for a state.
func fleetExit(state VerdictState) session.ExitCode {
	switch state {
	case Done:
		return session.ExitDone
	case Progressing:
		return session.ExitProgressing
	case Waiting:
		return session.ExitWaiting
	case ActionRequired:
		return session.ExitActionRequired
	default:
		return session.ExitUnknown
	}
}

// statusOptions holds the flags and the argument of the command fleet status.
type statusOptions struct {
	upgradeOptions

	format *session.Output
	watch  bool
}

// statusCommand returns the command that prints the progress of an upgrade.
func statusCommand(p *session.Session) *cobra.Command {
	o := &statusOptions{upgradeOptions: upgradeOptions{Session: p}}
	cmd := withFleetNames(p, &cobra.Command{
		Use:   "status NAME",
		Short: "Show the progress and failures of a fleet upgrade",
		Long: "Show the progress of a fleet upgrade, which clusters failed and why, and what to do.\n\n" +
			"The counters are published by the hub. The remaining time is estimated from the completed clusters. The exit code is\n" +
			"the verdict.",
		Example: "  oc update fleet status stores\n  oc update fleet status stores -w",
		Args:    cobra.ExactArgs(1),
		RunE:    session.RunE(o),
	})
	o.format = session.OutputFlags(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "print the status whenever it changes, until interrupted")
	return cmd
}

// Validate checks the flags.
func (o *statusOptions) Validate() error {
	switch err := o.format.Check(); {
	case err != nil:
		return err
	case o.watch && o.IsReplay():
		return session.UsageError("--replay: a dump does not change; leave out --watch")
	case o.watch && !o.format.IsText():
		return session.UsageError("--watch: prints text only; leave out --output")
	}
	return nil
}

// Run prints the status once, or repeatedly with --watch.
func (o *statusOptions) Run(ctx context.Context) error {
	cluster, s, err := o.read(ctx)
	if err != nil {
		return err
	}
	verdict := session.ExitWith(fleetExit(s.Verdict().State))
	if !o.format.IsText() {
		s.Upgrade.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
		return errors.Join(o.format.Print(o.Streams.Out, s.Upgrade), verdict)
	}
	if !o.watch {
		_, err := fmt.Fprint(o.Streams.Out, fleetPrinter(o.Session, o.upgrade).Status(s))
		return errors.Join(err, verdict)
	}
	return o.watchFleet(ctx, cluster, client.ObjectKeyFromObject(s.Upgrade), s)
}

// watchFleet prints the status until the user interrupts it. It redraws a terminal each time. For other
// outputs, it appends the status only if more than the time has changed.
func (o *statusOptions) watchFleet(ctx context.Context, cluster *session.Cluster, key client.ObjectKey, s *Snapshot) error {
	last := ""
	show := func(screen, compared string) error {
		if !o.Terminal.Interactive && compared == last {
			return nil
		}
		last = compared
		return o.Show(screen)
	}
	for {
		screen := fleetPrinter(o.Session, key.Name).Status(s)
		_, body, _ := strings.Cut(screen, "\n") // the first line contains the time
		if err := show(screen, s.Verdict().Text+body); err != nil {
			return err
		}
		next := o.nextFleet(ctx, cluster, key, func(message string) error { return show(message, message) })
		if next == nil {
			return session.ExitWith(fleetExit(s.Verdict().State))
		}
		s = next
	}
}

// nextFleet returns the next snapshot that can be read and reports errors until then. It returns nil once the
// user interrupts it.
func (o *statusOptions) nextFleet(ctx context.Context, cluster *session.Cluster, key client.ObjectKey, report func(string) error) *Snapshot {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.Clock.After(session.PollInterval):
		}
		s, err := Read(ctx, cluster, key, cluster.Clock.Now())
		if err == nil {
			return s
		}
		if ctx.Err() != nil || report(o.Explain(err)+"\n") != nil {
			return nil
		}
	}
}

// clustersOptions holds the flags and the argument of the command fleet clusters.
type clustersOptions struct {
	upgradeOptions

	format *session.Output
	states []string
}

// clustersCommand returns the command that lists the clusters of an upgrade.
func clustersCommand(p *session.Session) *cobra.Command {
	o := &clustersOptions{upgradeOptions: upgradeOptions{Session: p}}
	cmd := withFleetNames(p, &cobra.Command{
		Use:   "clusters NAME",
		Short: "List the clusters of a fleet upgrade in start order",
		Long: "List the clusters of a fleet upgrade in the order in which they start.\n\n" +
			"With --output, the command prints their ClusterUpgradeRuns. Clusters that have not started do not have one.",
		Example: "  oc update fleet clusters stores\n  oc update fleet clusters stores --state Failed",
		Args:    cobra.ExactArgs(1),
		RunE:    session.RunE(o),
	})
	o.format = session.OutputFlags(cmd)
	stateFlag(cmd, &o.states, "list only clusters in this state")
	return cmd
}

// stateFlag adds the flag --state.
func stateFlag(cmd *cobra.Command, states *[]string, usage string) {
	cmd.Flags().StringSliceVar(states, "state", nil, usage+": "+strings.Join(States(), ", ")+"; may be repeated")
	complete := cobra.FixedCompletions(States(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("state", complete); err != nil {
		panic(err) // the flag was added above
	}
}

// checkStates returns an error for an invalid value of --state.
func checkStates(states []string) error {
	for _, state := range states {
		if !slices.Contains(States(), state) {
			return session.UsageError("--state: is %q, must be one of %s", state, strings.Join(States(), ", "))
		}
	}
	return nil
}

// Validate checks the flags.
func (o *clustersOptions) Validate() error {
	if err := o.format.Check(); err != nil {
		return err
	}
	return checkStates(o.states)
}

// Run lists the clusters.
func (o *clustersOptions) Run(ctx context.Context) error {
	_, s, err := o.read(ctx)
	if err != nil {
		return err
	}
	if !o.format.IsText() {
		return o.format.Print(o.Streams.Out, Runs(s, o.states))
	}
	if s.Unreadable != nil {
		fmt.Fprintf(o.Streams.ErrOut, "%s: warning: clusters that have not started are missing: %s\n", o.Name, o.Explain(s.Unreadable))
	}
	header, rows := Clusters(s, o.states)
	if len(rows) == 0 {
		_, err := fmt.Fprintln(o.Streams.Out, "No clusters found.")
		return err
	}
	return screen.PrintTable(o.Streams.Out, header, rows)
}

// planOptions holds the flags and the argument of the command fleet plan.
type planOptions struct {
	upgradeOptions

	format *session.Output
}

// planCommand returns the command that prints what an upgrade would do.
func planCommand(p *session.Session) *cobra.Command {
	o := &planOptions{upgradeOptions: upgradeOptions{Session: p}}
	cmd := withFleetNames(p, &cobra.Command{
		Use:   "plan NAME",
		Short: "Show what a fleet upgrade would do",
		Long: "Show the order in which the clusters of a fleet would be upgraded, which clusters need no upgrade, and which cannot be\n" +
			"upgraded and why. The hub uses the same code to decide. It checks the clusters while spec.dryRun is true.",
		Example: "  oc update fleet start -f stores.yaml --dry-run\n  oc update fleet plan stores",
		Args:    cobra.ExactArgs(1),
		RunE:    session.RunE(o),
	})
	o.format = session.OutputFlags(cmd)
	return cmd
}

// Validate checks the flags.
func (o *planOptions) Validate() error { return o.format.Check() }

// Run prints the plan.
func (o *planOptions) Run(ctx context.Context) error {
	_, s, err := o.read(ctx)
	switch {
	case err != nil:
		return err
	case s.Unreadable != nil:
		return s.Unreadable
	}
	forecast := s.Forecast()
	verdict := session.ExitWith(fleetExit(forecast.State(s)))
	if !o.format.IsText() {
		s.Upgrade.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
		return errors.Join(o.format.Print(o.Streams.Out, s.Upgrade), verdict)
	}
	_, err = fmt.Fprint(o.Streams.Out, fleetPrinter(o.Session, o.upgrade).Plan(s))
	return errors.Join(err, verdict)
}
