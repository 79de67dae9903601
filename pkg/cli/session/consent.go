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

// Change describes what a command is about to change.
type Change struct {
	// Done describes the object afterward, for the user.
	Done string
	// Apply makes the change. Nil if the object is already as requested.
	Apply func(client.Client) error
}

// ChangeOptions are the flags of the commands that change something.
type ChangeOptions struct {
	Yes    bool
	DryRun dryRun
}

// Bind adds the flags to a command.
func (o *ChangeOptions) Bind(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "make the change without asking; required if the standard input is not a terminal")
	cmd.Flags().Var(&o.DryRun, "dry-run", "none, or server: the API server checks the change and does not make it")
}

// dryRun is the value of --dry-run.
type dryRun bool

// String returns the value as a user writes it.
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

// Type returns the name of the value in the help.
func (d *dryRun) Type() string { return "string" }

// Check fails if the user cannot agree to the change. It runs before anything is read.
func (o *ChangeOptions) Check(p *Session) error {
	if err := p.requireWritable(); err != nil {
		return err
	}
	if o.Yes || bool(o.DryRun) || p.Terminal.Asks {
		return nil
	}
	return UsageError("nothing was changed: the standard input is not a terminal, so you cannot agree; add -y to make the change, or --dry-run=server to check it")
}

// ConnectForChange returns a cluster that can be written to. It fails if the user cannot agree to the change.
func (p *Session) ConnectForChange(o *ChangeOptions) (*Cluster, error) {
	cluster, err := p.ConnectForWrites()
	if err != nil {
		return nil, err
	}
	return cluster, o.Check(p)
}

// Commit makes a change of what, once the user has agreed, and prints what was done.
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

// Agreed returns the cluster on which a command makes its change, once the user has agreed, and a note for what it prints.
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

// DryRunNote follows what is printed about a change that is not made.
const DryRunNote = " (server dry run)"

// ask asks the user whether to make a change.
func (p *Session) ask(ctx context.Context, cluster *Cluster, question string) error {
	if cluster.Config != nil {
		question += " of " + cluster.Config.Host
	}
	if _, err := fmt.Fprintf(p.Streams.ErrOut, "%s? [y/N] ", question); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // the standard input cannot be interrupted
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

// Annotate sets an annotation of an object. If the object was read, it must not have changed since.
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
