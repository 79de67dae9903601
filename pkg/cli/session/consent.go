// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is a change that a command is about to make.
type Change struct {
	// Done describes the object after the change, for the user.
	Done string
	// Apply makes the change. It is nil if the object already has the requested state.
	Apply func(client.Client) error
}

// ChangeOptions holds the flags of commands that make changes.
type ChangeOptions struct {
	Yes    bool
	DryRun dryRun
}

// Bind adds the flags to a command.
func (o *ChangeOptions) Bind(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "make the change without asking for confirmation; required if standard input is not a terminal")
	cmd.Flags().Var(&o.DryRun, "dry-run", "\"none\" or \"server\"; with \"server\", the API server validates the change without making it")
}

// dryRun is the value of --dry-run.
type dryRun bool

// String returns the value as users write it.
func (d *dryRun) String() string {
	if *d {
		return "server"
	}
	return "none"
}

// Set parses a value.
func (d *dryRun) Set(value string) error {
	switch value {
	case "none", "server":
		*d = value == "server"
		return nil
	}
	return fmt.Errorf("is %q, must be none or server", value)
}

// Type returns the type shown in the help.
func (d *dryRun) Type() string { return "string" }

// Check returns an error if the user has no way to confirm the change. It runs before anything is read.
func (o *ChangeOptions) Check(p *Session) error {
	if err := p.requireWritable(); err != nil {
		return err
	}
	if o.Yes || bool(o.DryRun) || p.Terminal.Asks {
		return nil
	}
	return UsageError("nothing was changed: the standard input is not a terminal, so you cannot agree; add -y to make the change, or --dry-run=server to check it")
}

// ConnectForChange returns a cluster for writing. It returns an error if the user has no way to confirm the
// change.
func (p *Session) ConnectForChange(o *ChangeOptions) (*Cluster, error) {
	cluster, err := p.ConnectForWrites()
	if err != nil {
		return nil, err
	}
	return cluster, o.Check(p)
}

// Commit makes a change after the user has confirmed it and prints the result.
func (p *Session) Commit(ctx context.Context, o *ChangeOptions, cluster *Cluster, question, what string, c Change) error {
	note := ""
	if c.Apply != nil {
		on, dryRun, err := p.Agreed(ctx, o, cluster, question)
		if err != nil {
			return err
		}
		if err := c.Apply(on.Client); err != nil {
			return err
		}
		note = dryRun
	}
	_, err := fmt.Fprintf(p.Streams.Out, "%s %s%s\n", what, c.Done, note)
	return err
}

// Agreed asks the user for confirmation. It returns the cluster on which to make the change and a note for
// the output.
func (p *Session) Agreed(ctx context.Context, o *ChangeOptions, cluster *Cluster, question string) (*Cluster, string, error) {
	switch {
	case bool(o.DryRun):
		dry := *cluster
		dry.Client = client.NewDryRunClient(cluster.Client)
		return &dry, DryRunNote, nil
	case o.Yes:
		return cluster, "", nil
	}
	return cluster, "", p.ask(ctx, cluster, question)
}

// DryRunNote is printed after a change that was only a dry run.
const DryRunNote = " (server dry run)"

// ask asks the user to confirm a change.
func (p *Session) ask(ctx context.Context, cluster *Cluster, question string) error {
	if cluster.Config != nil {
		question += " of " + cluster.Config.Host
	}
	if _, err := fmt.Fprintf(p.Streams.ErrOut, "%s? [y/N] ", question); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // reading standard input cannot be interrupted
		line, _ := bufio.NewReader(p.Streams.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
	}
	return &ExitError{code: ExitFailed, Err: errors.New("nothing was changed, because you did not agree")}
}

// Annotate sets an annotation on an object. If the object was read before, it must not have changed since.
func Annotate(ctx context.Context, c client.Client, object client.Object, annotation, value string) error {
	metadata := map[string]any{"annotations": map[string]string{annotation: value}}
	if version := object.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
