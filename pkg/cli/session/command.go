// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"github.com/spf13/cobra"
)

// Command is a command in the style of kubectl, with flags as fields.
type Command interface {
	// Complete sets fields from the arguments.
	Complete(cmd *cobra.Command, args []string) error
	// Validate checks flags and arguments before anything is read.
	Validate() error
	// Run connects to the cluster and does the work.
	Run(ctx context.Context) error
}

// RunE returns a cobra function that runs a command.
func RunE(c Command) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := c.Complete(cmd, args); err != nil {
			return err
		}
		if err := c.Validate(); err != nil {
			return err
		}
		return c.Run(cmd.Context())
	}
}

// NoArguments is embedded in commands without arguments.
type NoArguments struct{}

// Complete does nothing.
func (NoArguments) Complete(*cobra.Command, []string) error { return nil }

// NoFlags is embedded in commands whose flags and arguments need no validation.
type NoFlags struct{}

// Validate does nothing.
func (NoFlags) Validate() error { return nil }
