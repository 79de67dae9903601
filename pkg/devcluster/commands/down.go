// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// downTimeout is how long a cluster may take to stop.
const downTimeout = 30 * time.Second

func down(opts *globalOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster of the state folder, and remove its state.",
		Args:  manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner, err := controlplane.Owner(opts.dir)
			if err != nil {
				return err
			}
			if owner == 0 {
				cmd.Println("No cluster runs in " + opts.dir + ".")
				return clearState(opts.dir)
			}
			if err := syscall.Kill(owner, syscall.SIGTERM); err != nil {
				return fmt.Errorf("ending process %d: %w", owner, err)
			}
			limit := time.NewTimer(downTimeout)
			defer limit.Stop()
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-limit.C:
					return fmt.Errorf("process %d has not ended within %s", owner, downTimeout)
				case <-cmd.Context().Done():
					return cmd.Context().Err()
				case <-ticker.C:
					if left, err := controlplane.Owner(opts.dir); err != nil || left != owner {
						return errors.Join(err, clearState(opts.dir))
					}
				}
			}
		},
	}
}

// clearState removes the files of a cluster from its state folder, and then the folder if it is
// empty.
func clearState(dir string) error {
	stateFiles := []string{"audit-policy.yaml", "hub.kubeconfig", "components.kubeconfig", "bootstrap.kubeconfig", "spokes", "audit.log", "cluster-version-operator", "controller-manager.kubeconfig", "etcd", "kubeconfig", "lock", "logs", "alertmanager", "prometheus", "operator.kubeconfig", "operator.yaml", "operator.yaml.next", "pki"}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clearing the state folder: %w", err)
	}
	foreign := false
	for _, entry := range entries {
		if !slices.Contains(stateFiles, entry.Name()) {
			foreign = true
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("clearing the state folder: %w", err)
		}
	}
	if foreign {
		return nil
	}
	return os.Remove(dir)
}
