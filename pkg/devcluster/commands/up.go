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

func up(where *place) *cobra.Command {
	var like shape
	withOperator := true
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, and our operator on it; Ctrl-C ends both.",
		Args:  commandline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := where.complete(); err != nil {
				return err
			}
			spec, err := like.over(devcluster.Spec{})
			if err != nil {
				return err
			}
			return runUp(cmd.Context(), cmd.OutOrStdout(), where, spec, withOperator)
		},
	}
	like.bind(cmd.Flags())
	cmd.Flags().BoolVar(&withOperator, "operator", true, "deploy and run our operator, too")
	return cmd
}

func runUp(ctx context.Context, out io.Writer, where *place, spec devcluster.Spec, withOperator bool) (err error) {
	began := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: where.bin, Dir: where.dir, Spec: spec})
	if err != nil {
		return interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.Kubeconfig(where.kubeconfig()); err != nil {
		return err
	}
	var operatorDied <-chan error
	if withOperator {
		if err := cluster.Deploy(ctx, where.repository); err != nil {
			return interrupted(ctx, err)
		}
		operator, err := cluster.StartOperator(ctx, devcluster.OperatorOptions{})
		if err != nil {
			return interrupted(ctx, err)
		}
		operatorDied = operator.Died()
		defer func() { err = errors.Join(err, operator.Stop()) }()
	}
	printUp(out, where, cluster, time.Since(began), withOperator)
	select {
	case <-ctx.Done():
		return nil
	case err := <-cluster.Died():
		return err
	case err := <-operatorDied:
		return err
	}
}

// interrupted makes nothing of an error that comes of a Ctrl-C.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func printUp(out io.Writer, where *place, cluster *devcluster.Cluster, took time.Duration, withOperator bool) {
	spec := cluster.Spec()
	lines := []string{
		fmt.Sprintf("%s is up after %.1f s.", summary(spec), took.Seconds()),
		"",
		"  export KUBECONFIG=" + where.kubeconfig(),
		"  export PATH=" + where.bin + ":$PATH",
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
		lines = append(lines, "", "What the operator's webhook tells arrives in "+filepath.Join(where.dir, "logs", "receiver.log")+".")
	}
	lines = append(lines, "", "Logs are in "+filepath.Join(where.dir, "logs")+". Ctrl-C ends everything.")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}
