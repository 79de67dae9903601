// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

// The API server of the tests serves the kinds of this package, those of the other group with an
// UpgradeConfig, and those of OpenShift. No controller runs.
var (
	server     client.Client
	kubectl    string
	kubeconfig string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "managedupgrade")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	running, err := controlplane.Start(ctx, controlplane.Options{Dir: dir, WithoutControllerManager: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()

	kubectl, kubeconfig = filepath.Join(running.BinDir(), "kubectl"), filepath.Join(dir, "kubeconfig")
	if err := running.Kubeconfig(kubeconfig); err != nil {
		return 0, err
	}
	if server, err = manifests.Client(running.RESTConfig()); err != nil {
		return 0, err
	}
	if err := install(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// install applies the definitions: those of this project as a user does, with kubectl on the
// client's side.
func install(ctx context.Context) error {
	objects, err := manifests.Read(openshift.Files)
	if err != nil {
		return err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	if err := manifests.Apply(ctx, server, append(objects, ns)); err != nil {
		return err
	}
	if printed, err := command(ctx, "apply", "--server-side=false", "--kustomize", definitionsFolder).CombinedOutput(); err != nil {
		return fmt.Errorf("applying the definitions: %w: %s", err, printed)
	}
	added, err := manifests.Read(os.DirFS(definitionsFolder))
	if err != nil {
		return err
	}
	if err := manifests.Apply(ctx, server, added); err != nil {
		return err
	}
	return awaitDiscovery(ctx, len(samples))
}

// awaitDiscovery waits until kubectl discovers the kinds of this package.
func awaitDiscovery(ctx context.Context, kinds int) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		printed, err := command(ctx, "api-resources", "--api-group=managedupgrade.appuio.io", "--output=name", "--cached=false").Output()
		return err == nil && len(strings.Fields(string(printed))) == kinds, nil
	})
}

// command returns a command that runs kubectl as a user does, with a cache of its own.
func command(ctx context.Context, args ...string) *exec.Cmd {
	common := []string{"--kubeconfig", kubeconfig, "--cache-dir", filepath.Join(filepath.Dir(kubeconfig), "cache")}
	return exec.CommandContext(ctx, kubectl, append(common, args...)...)
}
