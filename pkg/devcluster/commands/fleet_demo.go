// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/invariants"
)

const (
	// failingCluster is the number of the cluster that fails in the demonstration. In a smaller fleet,
	// the last cluster fails.
	failingCluster = 5
	// screenInterval is the interval between checks of the screen. It is printed when it has changed.
	screenInterval = 2 * time.Second
	// demoTimeout limits the demonstration.
	demoTimeout = 5 * time.Minute
)

func fleetDemo(opts *globalOptions) *cobra.Command {
	var flags fleetFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Upgrade a fleet in which a cluster fails, print the status, and retry.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			p := &printer{out: cmd.OutOrStdout(), now: time.Now}
			spec := flags.described(cmd.Flags())
			p.line("Starting a hub with %d clusters.", spec.WithDefaults().Clusters)
			started := time.Now()
			running, stop, err := startFleet(cmd.Context(), opts, spec, true)
			if err != nil {
				return interrupted(cmd.Context(), err)
			}
			defer func() {
				err = errors.Join(err, stop())
				if err == nil { // the logs explain an error
					err = clearState(opts.dir)
				}
			}()
			p.line("The hub and its clusters were up after %s.", time.Since(started).Round(time.Second))
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
			defer cancel()
			d := &fleetDemonstration{printer: p, opts: opts, fleet: running}
			return interrupted(cmd.Context(), d.run(ctx))
		},
	}
	flags.bind(cmd.Flags())
	return cmd
}

// fleetDemonstration demonstrates an upgrade of a fleet.
type fleetDemonstration struct {
	printer *printer
	opts    *globalOptions
	fleet   *ocm.Fleet
	screen  string // the screen that was last printed
	checked invariants.Fleet
}

func (d *fleetDemonstration) run(ctx context.Context) error {
	if err := controlplane.RequireBuilt(d.opts.bin, "make build", "kubectl-update"); err != nil {
		return err
	}
	failing := ocm.ClusterName(min(failingCluster, d.fleet.Spec().Clusters))
	if err := d.fleet.Degrade(ctx, failing); err != nil {
		return err
	}
	upgrade, err := ocm.NewUpgrade()
	if err != nil {
		return err
	}
	requested := time.Now()
	d.printer.line("Requesting an upgrade of all clusters; on %s, etcd will be degraded.\n\n%s\n", failing, ocm.UpgradeYAML())
	if err := d.fleet.Client.Create(ctx, upgrade); err != nil {
		return fmt.Errorf("requesting the upgrade: %w", err)
	}
	if err := d.until(ctx, upgrade, func(s *fleetv1beta1.ManagedClustersUpgradeStatus) bool {
		c := s.ClustersSummery
		return c != nil && c.Failed > 0 && c.Ended()
	}); err != nil {
		return err
	}
	d.printer.line("\nRepairing %s, and retrying what failed.\n", failing)
	if err := d.fleet.Repair(ctx, failing); err != nil {
		return err
	}
	retried, err := d.command(ctx, "retry", "-y")
	if err != nil {
		return err
	}
	d.printer.line("%s", retried)
	if err := d.until(ctx, upgrade, func(s *fleetv1beta1.ManagedClustersUpgradeStatus) bool {
		return apimeta.IsStatusConditionTrue(s.Conditions, fleetv1beta1.ConditionComplete)
	}); err != nil {
		return err
	}
	d.printer.line("\nAll clusters are upgraded, %s after the request.", time.Since(requested).Round(time.Second))
	return nil
}

// until prints the screen whenever it changes, until the status satisfies the condition.
func (d *fleetDemonstration) until(ctx context.Context, upgrade *fleetv1beta1.ManagedClustersUpgrade, is func(*fleetv1beta1.ManagedClustersUpgradeStatus) bool) error {
	err := wait.PollUntilContextCancel(ctx, screenInterval, true, func(ctx context.Context) (bool, error) {
		if err := d.fleet.Client.Get(ctx, client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
			return false, fmt.Errorf("getting the upgrade: %w", err)
		}
		if err := d.checked.Upgrade(upgrade); err != nil {
			return false, err
		}
		if err := d.redraw(ctx); err != nil {
			return false, err
		}
		current := upgrade.Status.ObservedGeneration == upgrade.Generation
		return current && is(&upgrade.Status), nil
	})
	if err != nil {
		return fmt.Errorf("upgrading the fleet: %w", err)
	}
	return nil
}

// redraw prints the screen if it has changed.
func (d *fleetDemonstration) redraw(ctx context.Context) error {
	screen, err := d.command(ctx, "status")
	if err != nil {
		return err
	}
	if screen != d.screen {
		d.screen = screen
		d.printer.line("\n%s", screen)
	}
	return nil
}

// command returns the output of a kubectl-update command about the upgrade. Its exit code is
// ignored, since it reports the state of the upgrade.
func (d *fleetDemonstration) command(ctx context.Context, verb string, flags ...string) (string, error) {
	args := append([]string{"--kubeconfig", d.opts.kubeconfig(), "--namespace", ocm.Namespace, "fleet", verb, "stores"}, flags...)
	command := exec.CommandContext(ctx, filepath.Join(d.opts.bin, "kubectl-update"), args...) //nolint:gosec // the program of the programs' folder
	printed, err := command.CombinedOutput()
	if _, verdict := errors.AsType[*exec.ExitError](err); err != nil && !verdict {
		return "", fmt.Errorf("running kubectl-update fleet %s: %w", verb, err)
	}
	return string(bytes.TrimSpace(printed)), nil
}
