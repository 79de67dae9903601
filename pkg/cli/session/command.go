// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"github.com/spf13/cobra"
)

// Command is a command in the form of kubectl: its flags are fields.
type Command interface {
	// Complete takes over the arguments.
	Complete(cmd *cobra.Command, args []string) error
	// Validate checks the flags and the arguments, before anything is read.
	Validate() error
	// Run connects to the cluster, and does the work.
	Run(ctx context.Context) error
}

// RunE returns the function of cobra that runs a command.
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

// NoArguments is the part of a command without arguments.
type NoArguments struct{}

// Complete does nothing.
func (NoArguments) Complete(*cobra.Command, []string) error { return nil }

// NoFlags is the part of a command whose flags and arguments need no check.
type NoFlags struct{}

// Validate does nothing.
func (NoFlags) Validate() error { return nil }
