// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// Hub is our hub program, running with the permissions of its ServiceAccount.
type Hub struct {
	process *childprocess.Process
	command childprocess.Command
	probes  string
}

// StartHub starts the hub program and returns when it is ready.
func (f *Fleet) StartHub(ctx context.Context) (*Hub, error) {
	if err := controlplane.RequireBuilt(f.BinDir(), "make build", "hub"); err != nil {
		return nil, err
	}
	kubeconfig := f.Path("hub.kubeconfig")
	if err := f.ServiceAccountKubeconfig(ctx, kubeconfig, HubNamespace, HubServiceAccount); err != nil {
		return nil, fmt.Errorf("preparing the hub: %w", err)
	}
	memoryLimit, err := hubMemoryLimit(f.repository)
	if err != nil {
		return nil, err
	}
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	h := &Hub{probes: fmt.Sprintf("127.0.0.1:%d", port)}
	h.command = childprocess.Command{
		Path: filepath.Join(f.BinDir(), "hub"), Env: append(os.Environ(), memoryLimit), Log: f.Path("logs", "hub.log"), OnExit: f.ReportExit,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--operator-namespace=" + HubNamespace, "--leader-elect=false",
			"--metrics-bind-address=0", "--health-probe-bind-address=" + h.probes,
			fmt.Sprintf("--action-replica-sets=%t", f.spec.Real), // real clusters have a work manager
			"--image=example.com/hub:dev",                        // real clusters run its program operator
		},
	}
	return h, h.Start(ctx)
}

// hubMemoryLimit returns the environment variable by which the hub's Deployment limits the memory of Go's runtime.
func hubMemoryLimit(repository string) (string, error) {
	content, err := fs.ReadFile(os.DirFS(repository), "deploy/hub/deployment.yaml")
	if err != nil {
		return "", fmt.Errorf("reading the Deployment of the hub: %w", err)
	}
	var deployment appsv1.Deployment
	if err := yaml.Unmarshal(content, &deployment); err != nil {
		return "", fmt.Errorf("reading the Deployment of the hub: %w", err)
	}
	for _, container := range deployment.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == "GOMEMLIMIT" {
				return variable.Name + "=" + variable.Value, nil
			}
		}
	}
	return "", errors.New("the Deployment of the hub has no GOMEMLIMIT")
}

// Start starts the program and returns when it is ready.
func (h *Hub) Start(ctx context.Context) (err error) {
	if h.process, err = childprocess.Start(h.command); err != nil {
		return err
	}
	if err := controlplane.Await(ctx, h.process, &http.Transport{}, "http://"+h.probes+"/readyz"); err != nil {
		return fmt.Errorf("waiting until the hub is ready, see %s: %w", h.command.Log, err)
	}
	return nil
}

// PID returns the process ID.
func (h *Hub) PID() int { return h.process.PID() }

// Stop terminates the program.
func (h *Hub) Stop() error { return h.process.Stop(grace) }

// Kill kills the program, like a power failure of its node.
func (h *Hub) Kill() error { return h.process.Kill() }
