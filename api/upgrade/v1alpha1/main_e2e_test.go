// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

// The API server of this package's tests serves the CRD as it is deployed. No controller acts on
// the objects.
var (
	server     client.Client
	kubectl    string
	kubeconfig string
)

const namespace = "upgrades"

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "upgradeconfig")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
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
	objects, err := manifests.Read(os.DirFS("../../../deploy/crds"))
	if err != nil {
		return 0, err
	}
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace},
	}}
	if err := manifests.Apply(ctx, server, append(objects, ns)); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
