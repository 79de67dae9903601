// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/commandline"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

func up(opts *globalOptions) *cobra.Command {
	var cluster clusterFlags
	withOperator := true
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, and our operator on it; Ctrl-C ends both.",
		Args:  commandline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return err
			}
			spec, err := cluster.applyTo(devcluster.Spec{})
			if err != nil {
				return err
			}
			return runUp(cmd.Context(), cmd.OutOrStdout(), opts, spec, withOperator)
		},
	}
	cluster.bind(cmd.Flags())
	cmd.Flags().BoolVar(&withOperator, "operator", true, "deploy and run our operator, too")
	return cmd
}

func runUp(ctx context.Context, out io.Writer, opts *globalOptions, spec devcluster.Spec, withOperator bool) (err error) {
	startTime := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: opts.bin, Dir: opts.dir, Spec: spec})
	if err != nil {
		return ignoreInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.Kubeconfig(opts.kubeconfig()); err != nil {
		return err
	}
	var operatorDied <-chan error
	if withOperator {
		if err := cluster.Deploy(ctx, opts.repository); err != nil {
			return ignoreInterrupt(ctx, err)
		}
		operator, err := cluster.StartOperator(ctx, devcluster.OperatorOptions{})
		if err != nil {
			return ignoreInterrupt(ctx, err)
		}
		operatorDied = operator.Exited()
		defer func() { err = errors.Join(err, operator.Stop()) }()
	}
	printUp(out, opts, cluster, time.Since(startTime), withOperator)
	select {
	case <-ctx.Done():
		return nil
	case err := <-cluster.Exited():
		return err
	case err := <-operatorDied:
		return err
	}
}

// ignoreInterrupt makes nothing of an error that comes of a Ctrl-C.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func printUp(out io.Writer, opts *globalOptions, cluster *devcluster.Cluster, took time.Duration, withOperator bool) {
	spec := cluster.Spec()
	lines := []string{
		fmt.Sprintf("%s is up after %.1f s.", summary(spec), took.Seconds()),
		"",
		"  export KUBECONFIG=" + opts.kubeconfig(),
		"  export PATH=" + opts.bin + ":$PATH",
		"",
		"What to try next:",
		"  kubectl get clusterversion,clusteroperators,machineconfigpools,nodes",
		"  kubectl get clusterversion -w",
	}
	if withOperator {
		lines = append(lines,
			"  kubectl get upgradeconfigs -A -w   # after the following",
			"kubectl apply -f - <<END",
			upgradeConfigFor(spec),
			"END",
		)
	} else {
		lines = append(lines, fmt.Sprintf(
			"  kubectl patch clusterversion version --type merge -p '{\"spec\":{\"desiredUpdate\":{\"version\":%q}}}'", newest(spec)))
	}
	if running := cluster.Monitoring; running != nil {
		lines = append(lines, "",
			"Prometheus is at "+running.PrometheusURL()+", Alertmanager at "+running.AlertmanagerURL()+": what is known of alerts and silences is",
			"  curl -s "+running.AlertmanagerURL()+"/api/v2/alerts",
			"  curl -s "+running.AlertmanagerURL()+"/api/v2/silences")
	}
	if withOperator {
		lines = append(lines, "", "What the operator's webhook tells arrives in "+filepath.Join(opts.dir, "logs", "receiver.log")+".")
	}
	lines = append(lines, "", "Logs are in "+filepath.Join(opts.dir, "logs")+". Ctrl-C ends everything.")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}
