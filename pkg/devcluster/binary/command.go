// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// Command runs a command with kubectl or its plugin kubectl-update as an administrator.
func (w *World) Command(ctx context.Context, _ func(time.Duration) bool, words []string) (scenario.CommandResult, error) {
	kubeconfig := w.Cluster.Path("administrator.kubeconfig")
	if err := w.Cluster.Kubeconfig(kubeconfig); err != nil {
		return scenario.CommandResult{}, err
	}
	program, args := "kubectl", words[1:]
	if words[1] == "update" {
		program, args = "kubectl-update", words[2:]
	}
	if err := controlplane.RequireBuilt(w.Cluster.BinDir(), "make build", program); err != nil {
		return scenario.CommandResult{}, err
	}
	//nolint:gosec // a scenario runs what it says
	cmd := exec.CommandContext(ctx, filepath.Join(w.Cluster.BinDir(), program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+w.Cluster.Path("cache"), "_=oc") // as set by oc when it runs a plugin
	printed, err := cmd.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || !exit.Exited()) {
		return scenario.CommandResult{}, fmt.Errorf("running %s: %w", program, err)
	}
	return scenario.CommandResult{Printed: string(printed), ExitCode: cmd.ProcessState.ExitCode()}, nil
}
