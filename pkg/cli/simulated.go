// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
)

// RunSimulated runs "oc update" with arguments on a simulated cluster, without a kubeconfig, and returns
// its exit code. The alerts may be nil.
func RunSimulated(ctx context.Context, args []string, c client.Client, alerts informers.Prometheus, clk clock.Clock, out io.Writer) int {
	return int(Run(ctx, Environment{
		Program: "/usr/bin/kubectl-update", Invoker: "oc", Args: args, Version: "simulated", NoColor: true, Clock: clk,
		Streams: genericiooptions.IOStreams{Out: out, ErrOut: out},
		cluster: &Cluster{Reader: c, Client: c, Prometheus: alerts, Clock: clk},
	}))
}
