// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Environment is what a program receives from its process.
type Environment struct {
	// Program is the name by which the process was started.
	Program string
	// Invoker is the program that the shell started, which differs from Program for a plugin.
	Invoker string
	// Args are the arguments after the name.
	Args []string
	// Version is the version of the program.
	Version string
	// NoColor turns colors off.
	NoColor bool
	// Clock is the time.
	Clock clock.Clock
	// Streams are the standard streams.
	Streams genericiooptions.IOStreams
	// Terminal describes the terminal that Streams.Out writes to. If nil, it is detected.
	Terminal *Terminal

	cluster *Cluster // what the commands work on; nil means what the flags select
}

// Program is one run of kubectl-update. Its methods build the commands.
type Program struct {
	Environment

	name   string // as the user wrote it, for printed commands
	config *genericclioptions.ConfigFlags
	replay replayFlags
}

// silenceLibraries keeps libraries from writing to the terminal.
var silenceLibraries = sync.OnceFunc(func() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
})

// Run runs the program, prints its error if there is one, and returns its exit code.
func Run(ctx context.Context, env Environment) ExitCode {
	silenceLibraries()
	p := New(env)
	root := p.Command()
	root.SetArgs(env.Args)
	err := root.ExecuteContext(ctx)
	if exit, ok := errors.AsType[*exitError](err); err == nil || ok && exit.err == nil {
		return exitCode(err)
	}
	fmt.Fprintf(env.Streams.ErrOut, "%s: %s\n", p.name, p.explain(err))
	return exitCode(err)
}

// New returns a program.
func New(env Environment) *Program {
	if env.Terminal == nil {
		env.Terminal = detectTerminal(env.Streams.Out)
	}
	p := &Program{Environment: env, name: commandName(env.Program, env.Invoker), config: genericclioptions.NewConfigFlags(true)}
	p.config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = clientQPS, clientBurst
		if config.Timeout == 0 {
			config.Timeout = requestTimeout
		}
		config.UserAgent = rest.DefaultKubernetesUserAgent() + " kubectl-update/" + env.Version
		return config
	}
	return p
}

const (
	// clientQPS and clientBurst bound the requests of a command. A command has few; the default of
	// client-go would delay the pages of a long list.
	clientQPS, clientBurst = 50, 100

	// requestTimeout bounds a request, unless --request-timeout does.
	requestTimeout = 30 * time.Second
)

// Command returns the root command with all its subcommands.
func (p *Program) Command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-update",
		Short:         "Reports the status of cluster updates and checks clusters before an update.",
		Long:          rootDoc,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: p.name},
		Version:       p.Version,
		Args:          manager.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.Streams.In)
	root.SetOut(p.Streams.Out)
	root.SetErr(p.Streams.ErrOut)
	root.SetVersionTemplate("{{.Version}}\n")
	p.config.AddFlags(root.PersistentFlags())
	p.replay.bind(root.PersistentFlags())
	root.AddCommand(p.commands()...)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: ExitUsage, err: manager.FlagError(cmd, err)}
	})
	checkArgs(root)
	return root
}

// commands returns the commands below the root, in the order of the help.
func (p *Program) commands() []*cobra.Command {
	status := p.statusCommand()
	status.AddCommand(p.preChecksCommand())
	return slices.Concat([]*cobra.Command{
		status, p.preChecksCommand(), p.startCommand(), p.controlPlaneCommand(), p.workerNodesCommand(),
		p.previewCommand(), p.historyCommand(), p.watchCommand(), p.reportCommand(),
	}, p.actionCommands(), []*cobra.Command{
		p.acknowledgeCommand(), p.informersCommand(), p.conformanceCommand(), p.fleetCommand(), p.migrateConfigCommand(),
	})
}

const rootDoc = "Reports the status of cluster updates and checks clusters before an update.\n\n" +
	"Install it as a plugin: with kubectl-update on the PATH, \"oc update\" and \"kubectl update\" run it."

// checkArgs makes invalid arguments of all commands end the program with ExitUsage.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &exitError{code: ExitUsage, err: err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
}
