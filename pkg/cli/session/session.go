// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Environment holds the inputs of the process.
type Environment struct {
	// Program is the name under which the process was started.
	Program string
	// Invoker is the program started by the shell. It differs from Program for a plugin.
	Invoker string
	// Args holds the arguments without the program name.
	Args []string
	// Version is the version of the program.
	Version string
	// NoColor disables colors.
	NoColor bool
	// Clock is the clock of the program.
	Clock clock.Clock
	// Streams are the standard streams.
	Streams genericiooptions.IOStreams
	// Terminal is the terminal behind the streams. If it is nil, it is detected.
	Terminal *screen.Terminal

	// Cluster is the cluster that commands work on. If it is nil, the flags select the cluster.
	Cluster *Cluster
}

// Session is one run of kubectl-update. Its methods build the commands.
type Session struct {
	Environment

	Name   string // as run by the user, for printed commands
	Config *genericclioptions.ConfigFlags
	replay replayFlags
}

// silenceLibraries stops libraries from writing to the terminal.
var silenceLibraries = sync.OnceFunc(func() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
})

// Execute runs the commands of a root, prints the error, if any, and returns the exit code.
func Execute(ctx context.Context, env Environment, rootOf func(*Session) *cobra.Command) ExitCode {
	silenceLibraries()
	p := New(env)
	root := rootOf(p)
	root.SetArgs(env.Args)
	err := root.ExecuteContext(ctx)
	if exit, ok := errors.AsType[*ExitError](err); err == nil || ok && exit.Err == nil {
		return CodeOf(err)
	}
	fmt.Fprintf(env.Streams.ErrOut, "%s: %s\n", p.Name, p.Explain(err))
	return CodeOf(err)
}

// New returns a session.
func New(env Environment) *Session {
	if env.Terminal == nil {
		env.Terminal = screen.DetectTerminal(env.Streams.In, env.Streams.Out)
	}
	p := &Session{Environment: env, Name: commandName(env.Program, env.Invoker), Config: genericclioptions.NewConfigFlags(true)}
	p.Config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = clientQPS, clientBurst
		if config.Timeout == 0 {
			config.Timeout = RequestTimeout
		}
		config.UserAgent = rest.DefaultKubernetesUserAgent() + " kubectl-update/" + env.Version
		return config
	}
	return p
}

const (
	// clientQPS and clientBurst limit the request rate of a command. Commands send few requests, but
	// client-go's defaults would slow down long lists.
	clientQPS, clientBurst = 50, 100

	// RequestTimeout limits each request, unless --request-timeout is set.
	RequestTimeout = 30 * time.Second
)

// Paint colors a text if the output is colored.
func (p *Session) Paint(c screen.Color, text string) string {
	if p.NoColor || !p.Terminal.Interactive || c == screen.NoColor {
		return text
	}
	return "\x1b[1;" + string(c) + "m" + text + "\x1b[0m"
}

// Redraw clears the terminal before the next screen.
const Redraw = "\x1b[H\x1b[2J\x1b[3J"

// Show redraws the terminal. If the output is not a terminal, it appends the text and an empty line.
func (p *Session) Show(printed string) error {
	if p.Terminal.Interactive {
		_, err := fmt.Fprint(p.Streams.Out, Redraw+printed)
		return err
	}
	_, err := fmt.Fprintln(p.Streams.Out, printed)
	return err
}

// StdinPlaceholder stands for standard input or standard output instead of a file.
const StdinPlaceholder = "-"

// PollInterval is the time between reads while a command follows an update.
const PollInterval = 5 * time.Second

// NewRoot returns a root command with the given subcommands and the common flags.
func NewRoot(p *Session, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-update",
		Short:         "Show the status of cluster updates, and check clusters before an update",
		Long:          rootDoc,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: p.Name},
		Args:          manager.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
	}
	version := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *version {
			fmt.Fprintln(cmd.OutOrStdout(), p.Version)
			return nil
		}
		return cmd.Help()
	}
	root.SetIn(p.Streams.In)
	root.SetOut(p.Streams.Out)
	root.SetErr(p.Streams.ErrOut)
	p.Config.AddFlags(root.PersistentFlags())
	p.replay.bind(root.PersistentFlags())
	root.AddCommand(commands...)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &ExitError{code: ExitUsage, Err: manager.FlagError(cmd, err)}
	})
	checkArgs(root)
	return root
}

const rootDoc = "Show the status of cluster updates, and check clusters before an update.\n\n" +
	"To use the program as a plugin, put kubectl-update on the PATH and run \"oc update\" or \"kubectl update\"."

// checkArgs makes all commands exit with ExitUsage for invalid arguments.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &ExitError{code: ExitUsage, Err: err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
}
