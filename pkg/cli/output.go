// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// output is the flag -o of a command.
type output struct {
	flags *genericclioptions.PrintFlags
}

const outputWide = "wide"

// outputFlags adds the flag -o and those that go with it.
func outputFlags(cmd *cobra.Command) *output {
	o := &output{flags: genericclioptions.NewPrintFlags("").WithTypeSetter(sharedScheme())}
	o.flags.AddFlags(cmd)
	format := cmd.Flags().Lookup("output")
	format.Usage = "print the object of the API as json, yaml, or name, or in another format of kubectl, such as jsonpath=...; wide adds to the text for people"
	complete := cobra.FixedCompletions(o.formats(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was added above
	}
	return o
}

func (o *output) formats() []string {
	formats := append(o.flags.AllowedFormats(), outputWide)
	slices.Sort(formats)
	return slices.Compact(formats)
}

// isText reports whether the command prints text for people.
func (o *output) isText() bool { return *o.flags.OutputFormat == "" || o.isWide() }

// isWide reports whether the text has more columns.
func (o *output) isWide() bool { return *o.flags.OutputFormat == outputWide }

// check returns an error if the format is unknown. A command calls it before it reads anything.
func (o *output) check() error {
	if o.isText() {
		return nil
	}
	if _, err := o.flags.ToPrinter(); err != nil {
		return usageError("--output: is %q, must be one of %s", *o.flags.OutputFormat, strings.Join(o.formats(), ", "))
	}
	return nil
}

// print prints an object of the API.
func (o *output) print(out io.Writer, object runtime.Object) error {
	printer, err := o.flags.ToPrinter()
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return printer.PrintObj(object, out)
}

// printTable prints rows of cells, without columns that are empty. All cells are from the cluster and
// made harmless.
func printTable(out io.Writer, header []string, rows [][]string) error {
	w := printers.GetNewTabWriter(out)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = text.Sanitize(cell, text.MaxReason); cells[i] == "" {
				cells[i] = "-"
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}
