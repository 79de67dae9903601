// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func status(opts *globalOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the cluster is running, and its state.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner, err := controlplane.Owner(opts.dir)
			if err != nil {
				return err
			}
			if owner == 0 {
				return fmt.Errorf("no cluster runs in %s: start one with \"devcluster up\", or name its folder by --dir", opts.dir)
			}
			if _, err := os.Stat(opts.kubeconfig()); err != nil {
				return fmt.Errorf("the cluster of process %d is not up yet", owner)
			}
			cmd.Printf("The cluster of process %d runs. KUBECONFIG=%s\n\n", owner, opts.kubeconfig())
			config, err := controlplane.LoadKubeconfig(opts.kubeconfig())
			if err != nil {
				return err
			}
			scheme, err := devcluster.Scheme()
			if err != nil {
				return err
			}
			c, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return fmt.Errorf("reaching the cluster: %w", err)
			}
			return printStatus(cmd.Context(), cmd.OutOrStdout(), c)
		},
	}
}

func printStatus(ctx context.Context, out io.Writer, c client.Client) error {
	var version configv1.ClusterVersion
	if err := c.Get(ctx, client.ObjectKey{Name: "version"}, &version); err != nil {
		return fmt.Errorf("getting the cluster version: %w", err)
	}
	var pools mcfgv1.MachineConfigPoolList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&pools, &nodes} {
		if err := c.List(ctx, list); err != nil {
			return fmt.Errorf("listing pools and nodes: %w", err)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(format string, args ...any) {
		fmt.Fprintf(table, format+"\n", args...)
	}
	for _, condition := range version.Status.Conditions {
		if condition.Type == configv1.OperatorProgressing {
			row("version\t%s", condition.Message)
		}
	}
	for _, pool := range pools.Items {
		row("pool %s\t%d of %d nodes updated, %d unavailable, %d degraded", pool.Name,
			pool.Status.UpdatedMachineCount, pool.Status.MachineCount, pool.Status.UnavailableMachineCount, pool.Status.DegradedMachineCount)
	}
	for i := range nodes.Items {
		row("node %s\t%s", nodes.Items[i].Name, nodeState(&nodes.Items[i]))
	}
	return table.Flush()
}

func nodeState(node *corev1.Node) string {
	state := "not ready"
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			state = "ready"
		}
	}
	if node.Spec.Unschedulable {
		state += ", cordoned"
	}
	return state
}
