// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// upOptions are the options of the up command.
type upOptions struct {
	cluster         clusterFlags
	operator        string // path of the program; empty for the one in BinDir
	withoutOperator bool
	updateStatus    bool // also run the Update Status Controller
}

func up(opts *globalOptions) *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster and the operator; Ctrl-C ends both.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return err
			}
			spec, err := o.cluster.applyTo(openshiftsim.ClusterSpec{})
			if err != nil {
				return err
			}
			if o.operator, err = program(o.operator); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), opts, spec)
		},
	}
	o.cluster.bind(cmd.Flags())
	cmd.Flags().StringVar(&o.operator, "operator", "", "program to run as the operator, such as one with upgraders of your own (default: operator in the folder of the programs)")
	cmd.Flags().BoolVar(&o.withoutOperator, "without-operator", false, "start the cluster alone")
	cmd.Flags().BoolVar(&o.updateStatus, "update-status", false, "also start the Update Status Controller")
	cmd.MarkFlagsMutuallyExclusive("operator", "without-operator")
	return cmd
}

// program returns the absolute path of an existing program. An empty path stays empty.
func program(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("--operator: must be a program: %w", err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("--operator: must be a program: %s is not executable", path)
	}
	return filepath.Abs(path)
}

func (o *upOptions) run(ctx context.Context, out io.Writer, opts *globalOptions, spec openshiftsim.ClusterSpec) (err error) {
	startTime := time.Now()
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: opts.bin, Dir: opts.dir, Spec: spec})
	if err != nil {
		return ignoreInterrupt(ctx, err)
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.Kubeconfig(opts.kubeconfig()); err != nil {
		return err
	}
	var operatorExited <-chan error
	var statusExited <-chan struct{}
	var warning string
	if !o.withoutOperator || o.updateStatus {
		if err := cluster.Deploy(ctx, opts.repository); err != nil {
			return ignoreInterrupt(ctx, err)
		}
	}
	if o.updateStatus {
		status, err := cluster.StartStatusController(ctx, opts.repository)
		if err != nil {
			return ignoreInterrupt(ctx, err)
		}
		statusExited = status.Exited()
		defer func() { err = errors.Join(err, status.Stop(readyTimeout)) }()
	}
	if !o.withoutOperator {
		operator, err := cluster.StartOperator(ctx, devcluster.OperatorOptions{Program: o.operator})
		if err != nil {
			return ignoreInterrupt(ctx, err)
		}
		operatorExited = operator.Exited()
		defer func() { err = errors.Join(err, operator.Stop()) }()
		warning = notReady(ctx, operator)
	}
	o.print(out, opts, cluster, time.Since(startTime))
	fmt.Fprint(out, warning)
	select {
	case <-ctx.Done():
		return nil
	case err := <-cluster.Exited():
		return err
	case err := <-operatorExited:
		return err
	case <-statusExited:
		return errors.New("the Update Status Controller has ended; \"devcluster logs update-status-controller\" has the reason")
	}
}

// readyTimeout limits how long the command waits for the operator to be ready.
const readyTimeout = 15 * time.Second

// notReady waits until the operator is ready. It returns a warning if that takes too long, for
// example because the ServiceAccount may not watch a kind, and an empty string otherwise.
func notReady(ctx context.Context, operator *devcluster.Operator) string {
	replica := operator.Replicas()[0]
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		return replica.Ready(ctx) || !replica.Running(), nil
	})
	if err == nil || ctx.Err() != nil {
		return ""
	}
	return fmt.Sprintf("\nThe operator is not ready yet, and nothing is upgraded until it is. Its log names the reason, such as\na missing permission: %s\n", replica.Log())
}

// ignoreInterrupt returns nil if the command was interrupted, and err otherwise.
func ignoreInterrupt(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (o *upOptions) print(out io.Writer, opts *globalOptions, cluster *devcluster.Cluster, took time.Duration) {
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
	lines = append(lines, o.suggestion(spec)...)
	if running := cluster.Monitoring; running != nil {
		lines = append(lines, "",
			"Prometheus is at "+running.PrometheusURL()+", Alertmanager at "+running.AlertmanagerURL()+". Alerts and silences:",
			"  curl -s "+running.AlertmanagerURL()+"/api/v2/alerts",
			"  curl -s "+running.AlertmanagerURL()+"/api/v2/silences")
	}
	if !o.withoutOperator {
		lines = append(lines, "", "The notifications of the operator are in "+filepath.Join(opts.dir, "logs", "receiver.log")+".")
	}
	lines = append(lines, "", "Logs are in "+filepath.Join(opts.dir, "logs")+". Ctrl-C ends everything.")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}

// suggestion returns commands that start an upgrade that can succeed.
func (o *upOptions) suggestion(spec openshiftsim.ClusterSpec) []string {
	to := suggestedUpdate(spec)
	switch {
	case to == update{}:
		return []string{fmt.Sprintf("No release can be reached from %s without a known risk: add one by --release.", spec.Version)}
	case o.withoutOperator:
		var lines []string
		if to.channel != spec.Channel {
			lines = append(lines, fmt.Sprintf("  kubectl patch clusterversion version --type merge -p '{\"spec\":{\"channel\":%q}}'", to.channel))
		}
		return append(lines, fmt.Sprintf("  kubectl patch clusterversion version --type merge -p '{\"spec\":{\"desiredUpdate\":{\"version\":%q}}}'", to.version))
	default:
		return []string{
			"  kubectl get upgrade -A -w   # after the following",
			"kubectl apply -f - <<END",
			upgradeConfigFor(to),
			"END",
		}
	}
}
