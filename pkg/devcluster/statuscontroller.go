// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// statusController is the name of the Update Status Controller's binary and ServiceAccount.
const statusController = "update-status-controller"

// StartStatusController installs the Update Status Controller from the manifests in a checkout and
// starts it as a process with the permissions of its ServiceAccount. It reads alerts from the
// cluster's Prometheus, if there is one. Call Deploy first. The caller stops the process.
func (c *Cluster) StartStatusController(ctx context.Context, repository string) (*childprocess.Process, error) {
	folder := filepath.Join(repository, "deploy", "update-status")
	if err := c.Apply(ctx, os.DirFS(filepath.Join(folder, "crds"))); err != nil {
		return nil, fmt.Errorf("applying the definitions of update status: %w", err)
	}
	for _, name := range []string{"service_account.yaml", "role.yaml", "role_binding.yaml"} {
		content, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // a file of the checkout
		if err != nil {
			return nil, fmt.Errorf("reading the permissions of the %s: %w", statusController, err)
		}
		objects, err := manifests.Decode(content)
		if err != nil {
			return nil, fmt.Errorf("decoding %s: %w", name, err)
		}
		if err := manifests.Apply(ctx, c.Client, objects); err != nil {
			return nil, err
		}
	}
	kubeconfig := c.Path(statusController + ".kubeconfig")
	if err := c.ServiceAccountKubeconfig(ctx, kubeconfig, OperatorNamespace, statusController); err != nil {
		return nil, err
	}
	args := []string{"--kubeconfig=" + kubeconfig, "--operator-namespace=" + OperatorNamespace, "--metrics-secure=false"}
	for _, flag := range []string{"--metrics-bind-address", "--health-probe-bind-address"} {
		port, err := controlplane.FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, fmt.Sprintf("%s=127.0.0.1:%d", flag, port))
	}
	if c.Monitoring != nil {
		args = append(args, "--alerts-url="+c.Monitoring.PrometheusURL())
	}
	if err := controlplane.RequireBuilt(c.BinDir(), "make build", statusController); err != nil {
		return nil, err
	}
	return childprocess.Start(childprocess.Command{
		Path: filepath.Join(c.BinDir(), statusController), Args: args, Log: c.Path("logs", statusController+".log"),
	})
}
