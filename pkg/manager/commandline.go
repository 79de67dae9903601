// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NewCommand returns the command line of a binary, without flags. run must run the binary until the
// context ends.
func NewCommand(name, short, version string, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Version: version, Args: NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
	}
	cmd.SetFlagErrorFunc(FlagError)
	return cmd
}

// FlagError adds a description of valid values to an error about a flag. Use it with
// cobra.Command.SetFlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	kinds := map[string]string{"bool": "true or false", "int": "a whole number", "float64": "a number"}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && kinds[invalid.GetFlag().Value.Type()] != "" {
		return fmt.Errorf("--%s: is %q, must be %s", invalid.GetFlag().Name, invalid.GetValue(), kinds[invalid.GetFlag().Value.Type()])
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		if similar := similarFlags(cmd, unknown.GetSpecifiedName()); len(similar) > 0 {
			return fmt.Errorf("%w; did you mean %s?", err, strings.Join(similar, " or "))
		}
	}
	return fmt.Errorf("%w; %s", err, helpHint(cmd))
}

// similarFlags returns the flags of a command whose names are similar to name, using cobra's search
// for similar commands. It returns none for short names, because everything is similar to them.
func similarFlags(cmd *cobra.Command, name string) []string {
	if len(name) <= 2*maxTypos {
		return nil
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: maxTypos}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			flags.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	similar := flags.SuggestionsFor(name)
	for i := range similar {
		similar[i] = "--" + similar[i]
	}
	return similar
}

// NoArgs rejects positional arguments. Use it as cobra.Command.Args.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = maxTypos
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		for i, name := range similar {
			similar[i] = strconv.Quote(cmd.CommandPath() + " " + name)
		}
		return fmt.Errorf("unexpected argument %q; did you mean %s?", args[0], strings.Join(similar, " or "))
	}
	return fmt.Errorf("unexpected argument %q; %s", args[0], helpHint(cmd))
}

// maxTypos is the maximum number of wrong characters in a name for which suggestions are made.
const maxTypos = 2

func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("%q lists the flags", cmd.CommandPath()+" --help")
}
