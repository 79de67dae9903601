// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

const (
	// statusController is the name of the Update Status Controller, of its program, and of its
	// ServiceAccount.
	statusController = "update-status-controller"
	// statusGrace is how long the Update Status Controller may take to end.
	statusGrace = 10 * time.Second
)

// startStatusController installs the Update Status Controller as its manifests do, and starts it as a
// process with the permissions of its ServiceAccount.
func (w *World) startStatusController(ctx context.Context) error {
	folder := filepath.Join(w.repository, "deploy", "update-status")
	if err := w.Cluster.Apply(ctx, os.DirFS(filepath.Join(folder, "crds"))); err != nil {
		return fmt.Errorf("applying the definitions of update status: %w", err)
	}
	for _, name := range []string{"service_account.yaml", "role.yaml", "role_binding.yaml"} {
		content, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // a file of the checkout
		if err != nil {
			return fmt.Errorf("reading the permissions of the %s: %w", statusController, err)
		}
		objects, err := manifests.Decode(content)
		if err != nil {
			return fmt.Errorf("decoding %s: %w", name, err)
		}
		if err := manifests.Apply(ctx, w.objects, objects); err != nil {
			return err
		}
	}
	account, err := w.Cluster.ServiceAccountConfig(ctx, devcluster.OperatorNamespace, statusController)
	if err != nil {
		return err
	}
	kubeconfig := w.Cluster.Path(statusController + ".kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, account); err != nil {
		return err
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--operator-namespace=" + devcluster.OperatorNamespace, "--metrics-secure=false", "--leader-elect=false"}
	for _, flag := range []string{"--metrics-bind-address", "--health-probe-bind-address"} {
		port, err := controlplane.FreePort()
		if err != nil {
			return err
		}
		args = append(args, fmt.Sprintf("%s=127.0.0.1:%d", flag, port))
	}
	if err := controlplane.RequireBuilt(w.Cluster.BinDir(), "make build", statusController); err != nil {
		return err
	}
	w.status, err = controlplane.StartProcess(controlplane.Command{
		Path: filepath.Join(w.Cluster.BinDir(), statusController), Args: args, Log: w.Cluster.Path("logs", statusController+".log"),
	})
	return err
}
