// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commandline has what the programs have in common in refusing what they
// are called with: one line that says what is wrong and what would be right.
//
// It knows no command and no flag.
package commandline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagError says what would be right. It is for cobra.Command.SetFlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	kinds := map[string]string{"bool": "true or false", "int": "a whole number", "float64": "a number"}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && kinds[invalid.GetFlag().Value.Type()] != "" {
		return fmt.Errorf("--%s: is %q, must be %s", invalid.GetFlag().Name, invalid.GetValue(), kinds[invalid.GetFlag().Value.Type()])
	}
	return fmt.Errorf("%w; %s", err, helpHint(cmd))
}

// NoArgs refuses arguments that are no flags. It is for cobra.Command.Args.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is no flag, and there are no other arguments; %s", args[0], helpHint(cmd))
	}
	return nil
}

func helpHint(cmd *cobra.Command) string {
	return fmt.Sprintf("%q lists the flags", cmd.CommandPath()+" --help")
}
