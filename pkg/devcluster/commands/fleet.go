// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/agent"
)

// fleetFlags are the flags that describe a fleet.
type fleetFlags struct{ spec ocm.Spec }

func (f *fleetFlags) bind(flags *pflag.FlagSet) {
	f.spec = ocm.Spec{}.WithDefaults()
	flags.BoolVar(&f.spec.Real, "real", false, "run dev clusters with the agents of Open Cluster Management, two by default, at most four")
	flags.IntVar(&f.spec.Clusters, "clusters", f.spec.Clusters, "number of clusters")
	flags.IntVar(&f.spec.Canaries, "canaries", f.spec.Canaries, "how many of them have the label canary=true")
	flags.IntVar(&f.spec.Groups, "groups", f.spec.Groups, "number of groups of the others, in their label group")
	flags.DurationVar(&f.spec.Duration, "duration", f.spec.Duration, "how long an upgrade of a simulated cluster takes")
	flags.DurationVar(&f.spec.Interval, "interval", f.spec.Interval, "time between two polls of an agent")
}

// described returns the fleet described by the flags. The default number of clusters applies only
// to simulated clusters.
func (f *fleetFlags) described(flags *pflag.FlagSet) ocm.Spec {
	if f.spec.Real && !flags.Changed("clusters") {
		f.spec.Clusters, f.spec.Groups = 0, 0
	}
	return f.spec
}

func fleetCommand(opts *globalOptions) *cobra.Command {
	cmd := &cobra.Command{Use: "fleet", Short: "Run a hub of Open Cluster Management with simulated or real clusters."}
	cmd.AddCommand(fleetUp(opts), fleetDemo(opts))
	return cmd
}

func fleetUp(opts *globalOptions) *cobra.Command {
	var flags fleetFlags
	withoutHub := false
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a fleet and our hub program; Ctrl-C ends both. \"devcluster down\" also ends it.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			startTime := time.Now()
			running, stop, err := startFleet(cmd.Context(), opts, flags.described(cmd.Flags()), !withoutHub)
			if err != nil {
				return ignoreInterrupt(cmd.Context(), err)
			}
			defer func() { err = errors.Join(err, stop()) }()
			printFleet(cmd.OutOrStdout(), opts, running, time.Since(startTime))
			select {
			case <-cmd.Context().Done():
				return nil
			case err := <-running.Exited():
				return err
			}
		},
	}
	flags.bind(cmd.Flags())
	cmd.Flags().BoolVar(&withoutHub, "without-hub", false, "do not start our hub program")
	return cmd
}

// startFleet starts a fleet and optionally our hub program. It returns a function that stops both.
func startFleet(ctx context.Context, opts *globalOptions, spec ocm.Spec, withHub bool) (*ocm.Fleet, func() error, error) {
	if err := opts.complete(); err != nil {
		return nil, nil, err
	}
	running, err := ocm.Start(ctx, ocm.Options{BinDir: opts.bin, Dir: opts.dir, Repository: opts.repository, Spec: spec})
	if err != nil {
		return nil, nil, err
	}
	if err := running.Kubeconfig(opts.kubeconfig()); err != nil {
		return nil, nil, errors.Join(err, running.Stop())
	}
	if !withHub {
		return running, running.Stop, nil
	}
	hub, err := running.StartHub(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, running.Stop())
	}
	return running, func() error { return errors.Join(hub.Stop(), running.Stop()) }, nil
}

func printFleet(out io.Writer, opts *globalOptions, running *ocm.Fleet, took time.Duration) {
	for _, line := range slices.Concat([]string{
		fmt.Sprintf("A hub with %d clusters is up after %.1f s.", running.Spec().Clusters, took.Seconds()),
		"",
		"  export KUBECONFIG=" + opts.kubeconfig(),
		"  export PATH=" + opts.bin + ":$PATH",
		"",
		"What to try next:",
		"  kubectl get managedclusters --show-labels",
		"  kubectl get clusterupgraderuns -A -w   # after the following",
		"  kubectl apply -f - <<END",
		ocm.UpgradeYAML(),
		"END",
		"",
	}, aboutClusters(running), []string{
		"",
		"Logs are in " + filepath.Join(opts.dir, "logs") + ". Ctrl-C ends everything.",
	}) {
		fmt.Fprintln(out, line)
	}
}

// aboutClusters explains how to access the clusters, or how to script simulated ones.
func aboutClusters(running *ocm.Fleet) []string {
	if !running.Spec().Real {
		return []string{
			"Annotations script a cluster:",
			"  kubectl annotate managedcluster " + ocm.ClusterName(1) + " " + agent.FailsAnnotation + "='etcd is degraded'",
			"  kubectl annotate managedcluster " + ocm.ClusterName(1) + " " + agent.UnreachableAnnotation + "=",
		}
	}
	lines := []string{"The clusters:"}
	for _, spoke := range running.Spokes {
		lines = append(lines, "  kubectl --kubeconfig "+spoke.AdminKubeconfig()+" get clusterversion")
	}
	return lines
}
