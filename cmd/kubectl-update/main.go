// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The kubectl-update program is a plugin for oc and kubectl that reports the status of cluster updates.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(int(cli.Run(ctx, session.Environment{
		Program: os.Args[0],
		Invoker: os.Getenv("_"),
		Args:    os.Args[1:],
		Version: manager.Version(),
		NoColor: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		Clock:   clock.RealClock{},
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	})))
}
