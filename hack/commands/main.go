// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The commands program writes the reference of kubectl-update, one page per command.
//
// Usage:
//
//	commands markdown FOLDER      writes the pages of the documentation
//	commands man FOLDER VERSION   writes man pages dated SOURCE_DATE_EPOCH
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "commands:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	root := cli.Root(session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{}, Streams: genericiooptions.NewTestIOStreamsDiscard()}))
	root.DisableAutoGenTag = true
	root.PersistentFlags().Lookup("cache-dir").DefValue = "~/.kube/cache" // the default depends on the machine
	switch {
	case len(args) == 2 && args[0] == "markdown":
		banner := func(string) string { return "<!-- Generated from the code by `make update`. -->\n\n" }
		return doc.GenMarkdownTreeCustom(root, args[1], banner, func(link string) string { return link })
	case len(args) == 3 && args[0] == "man":
		return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "kubectl-update " + args[2], Manual: "Managed Upgrade Operator"}, args[1])
	default:
		return errors.New("usage: commands markdown FOLDER | commands man FOLDER VERSION")
	}
}
