// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Reference returns the reference page of the program: its commands, flags, and exit codes.
func Reference() string {
	root := New(Environment{Program: "/oc-update", Terminal: &Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()}).Command()
	root.InitDefaultCompletionCmd("")
	var page strings.Builder
	page.WriteString("# kubectl-update\n\n")
	page.WriteString(root.Long + "\n\n## Commands\n\n| command | description |\n| --- | --- |\n")
	visible(root, func(cmd *cobra.Command) {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", cmd.CommandPath(), strings.ReplaceAll(cmd.CommandPath(), " ", "-"), cmd.Short)
	})
	page.WriteString("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n")
	for _, exit := range ExitCodes() {
		fmt.Fprintf(&page, "| %d | %s |\n", exit.Code, exit.Meaning)
	}
	visible(root, func(cmd *cobra.Command) {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n```sh\n%s\n```\n", cmd.CommandPath(), orShort(cmd), cmd.UseLine())
		if cmd.Example != "" {
			fmt.Fprintf(&page, "\nExamples:\n\n```sh\n%s\n```\n", cmd.Example)
		}
		flagTable(&page, cmd.LocalNonPersistentFlags())
	})
	page.WriteString("\n## Flags of all commands\n")
	flagTable(&page, root.PersistentFlags())
	return page.String()
}

// visible visits the commands that do something, in the order of the help.
func visible(root *cobra.Command, visit func(*cobra.Command)) {
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		if cmd.Runnable() {
			visit(cmd)
		}
		visible(cmd, visit)
	}
}

func orShort(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short
}

func flagTable(page *strings.Builder, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	page.WriteString("\n| flag | default | description |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := f.DefValue
		if f.Name == "cache-dir" {
			value = "~/.kube/cache" // the default depends on the machine
		}
		if value != "" && value != "[]" && value != "false" {
			value = "`" + value + "`"
		} else {
			value = "-"
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
