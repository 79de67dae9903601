// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// SimulatedRun returns a function that runs the commands of a root on a simulated cluster, without a
// kubeconfig. It returns the exit code. The alerts may be nil.
func SimulatedRun(rootOf func(*Session) *cobra.Command) func(context.Context, []string, client.Client, checks.AlertSource, clock.Clock, io.Writer) int {
	return func(ctx context.Context, args []string, c client.Client, alerts checks.AlertSource, clk clock.Clock, out io.Writer) int {
		return int(Execute(ctx, Environment{
			Program: "/usr/bin/kubectl-update", Invoker: "oc", Args: args, Version: "simulated", NoColor: true, Clock: clk,
			Streams: genericiooptions.IOStreams{Out: out, ErrOut: out},
			Cluster: &Cluster{Reader: c, Client: c, Prometheus: alerts, Clock: clk},
		}, rootOf))
	}
}
