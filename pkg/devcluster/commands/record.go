// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/recording"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

const (
	recordingSpeed    timescale.Speed    = 20                                   // Kubernetes stores times with a resolution of seconds
	recordingInterval timescale.Duration = timescale.Duration(15 * time.Second) // in recorded time
	recordingLimit    timescale.Duration = timescale.Duration(8 * time.Hour)
	settledSamples                       = 8 // recorded after the end of the update
)

// recordOptions are the options of the record command.
type recordOptions struct {
	cluster clusterFlags
}

func record(opts *globalOptions) *cobra.Command {
	var o recordOptions
	cmd := &cobra.Command{
		Use:   "record FILE",
		Short: "Update a cluster without the operator, and record what it shows every 15 seconds.",
		Long: "Start a cluster, update it to the highest version that it offers without a known risk, and record what\n" +
			"\"oc update status\" reads, until all nodes are updated. The cluster is 20 times as fast as a real one\n" +
			"unless --speed is set; the recorded times are those of a real one, with a sample every 15 seconds. The\n" +
			"tests of \"oc update status\" replay such recordings.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.complete(); err != nil {
				return err
			}
			spec, err := o.cluster.applyTo(openshiftsim.ClusterSpec{Speed: recordingSpeed})
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), opts, spec, args[0])
		},
	}
	o.cluster.bind(cmd.Flags())
	return cmd
}

func (o *recordOptions) run(ctx context.Context, out io.Writer, opts *globalOptions, spec openshiftsim.ClusterSpec, path string) (err error) {
	to := suggestedUpdate(spec.WithDefaults())
	if to == (update{}) {
		return fmt.Errorf("no release can be reached from %s without a known risk: add one by --release", spec.WithDefaults().Version)
	}
	cluster, err := devcluster.Start(ctx, devcluster.Options{BinDir: opts.bin, Dir: opts.dir, Spec: spec})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if err := cluster.Apply(ctx, recording.Workload); err != nil {
		return err
	}
	file, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return fmt.Errorf("creating the recording: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, cluster.Spec().Speed.Scale(recordingLimit))
	defer cancel()
	samples, err := recordUpdate(ctx, cluster, file, to)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has %d samples of the update to %s.\n", path, samples, to.version)
	return nil
}

// recordUpdate requests an update and records it until all nodes are updated. It returns the number
// of samples.
func recordUpdate(ctx context.Context, cluster *devcluster.Cluster, out io.Writer, to update) (samples int, err error) {
	speed := cluster.Spec().Speed
	recorder := recording.NewRecorder(cluster.Client, out, speed, time.Now().Truncate(time.Second))
	defer func() { err = errors.Join(err, recorder.Close()) }()
	ticker := time.NewTicker(speed.Scale(recordingInterval))
	defer ticker.Stop()
	if err := awaitWorkload(ctx, cluster.Client); err != nil {
		return 0, err
	}
	patch := fmt.Appendf(nil, `{"spec": {"channel": %q, "desiredUpdate": {"version": %q}}}`, to.channel, to.version)
	version := &configv1.ClusterVersion{}
	version.Name = "version"
	for settled := 0; settled < settledSamples; samples++ {
		if samples == 1 { // the first sample shows the idle cluster
			if err := cluster.Client.Patch(ctx, version, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return samples, fmt.Errorf("requesting %s: %w", to.version, err)
			}
		}
		if err := recorder.Record(ctx, time.Now()); err != nil {
			return samples, err
		}
		updated, err := checks.IsInstalled(ctx, cluster.Client, clusterstate.Target{Version: to.version})
		if err != nil {
			return samples, err
		}
		if updated {
			settled++
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return samples, fmt.Errorf("recording the update to %s: %w", to.version, ctx.Err())
		}
	}
	return samples, nil
}

// awaitWorkload waits until the workload is ready.
func awaitWorkload(ctx context.Context, c client.Reader) error {
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var deployments appsv1.DeploymentList
		err := c.List(ctx, &deployments)
		return err == nil && !slices.ContainsFunc(deployments.Items, func(d appsv1.Deployment) bool { return d.Status.ReadyReplicas != *d.Spec.Replicas }), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the workload: %w", err)
	}
	return nil
}
