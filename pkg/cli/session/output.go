// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
)

// Output is the flag -o of a command. It supports the formats of kubectl except go-template: templates make
// the linker keep all exported methods, a fifth of the binary's size.
type Output struct {
	Format string
	object *genericclioptions.JSONYamlPrintFlags
	name   *genericclioptions.NamePrintFlags
	path   *genericclioptions.JSONPathPrintFlags
	typed  *printers.TypeSetterPrinter
}

const (
	outputName = "name"
	outputWide = "wide"
)

// OutputFlags adds the flag -o and the flags that belong to it.
func OutputFlags(cmd *cobra.Command) *Output {
	o := &Output{
		object: genericclioptions.NewJSONYamlPrintFlags(), name: genericclioptions.NewNamePrintFlags(""),
		path: genericclioptions.NewJSONPathPrintFlags("", true), typed: printers.NewTypeSetter(scheme.Shared()),
	}
	o.object.AddFlags(cmd)
	o.path.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "output format: json, yaml, name, or jsonpath=... print the API object; wide prints text with more details")
	complete := cobra.FixedCompletions(o.formats(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag was added above
	}
	return o
}

func (o *Output) formats() []string {
	formats := slices.Concat(o.object.AllowedFormats(), o.name.AllowedFormats(), o.path.AllowedFormats(), []string{outputWide})
	slices.Sort(formats)
	return slices.Compact(formats)
}

// IsText reports whether the command prints human-readable text.
func (o *Output) IsText() bool { return o.Format == "" || o.IsWide() }

// IsWide reports whether the text has additional columns.
func (o *Output) IsWide() bool { return o.Format == outputWide }

// Check returns an error if the format is unknown. Commands call it before they read anything.
func (o *Output) Check() error {
	if o.IsText() {
		return nil
	}
	if _, err := o.printer(); err != nil {
		return UsageError("--output: is %q, must be one of %s", o.Format, strings.Join(o.formats(), ", "))
	}
	return nil
}

// printer returns the printer for the format.
func (o *Output) printer() (printers.ResourcePrinter, error) {
	var err error
	for _, flags := range []interface {
		ToPrinter(format string) (printers.ResourcePrinter, error)
	}{o.object, o.name, o.path} {
		var printer printers.ResourcePrinter
		if printer, err = flags.ToPrinter(o.Format); !genericclioptions.IsNoCompatiblePrinterError(err) {
			return o.typed.WrapToPrinter(printer, err)
		}
	}
	return nil, err
}

// Print prints an API object, or a list whose items have their kinds, as kubectl expects them.
func (o *Output) Print(out io.Writer, object runtime.Object) error {
	printer, err := o.printer()
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if !meta.IsListType(object) {
		return printer.PrintObj(object, out)
	}
	if o.Format == outputName { // its printer rejects lists
		return meta.EachListItem(object, func(item runtime.Object) error { return printer.PrintObj(item, out) })
	}
	if err := meta.EachListItem(object, o.setKind); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return printer.PrintObj(object, out)
}

func (o *Output) setKind(object runtime.Object) error {
	kinds, _, err := o.typed.Typer.ObjectKinds(object)
	if err != nil {
		return err
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return nil
}
