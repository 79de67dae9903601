// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	ocmcrds "github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm/crds"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
)

// server serves the kinds of this package and their runs.
var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

// install applies all manifests of the hub as a user does, with kubectl on the client's side.
func install(ctx context.Context) error {
	if err := server.Install(ctx, openshift.Files); err != nil { // a ServiceMonitor is among the manifests
		return err
	}
	ocm, err := fs.Sub(ocmcrds.Files, "hub")
	if err != nil {
		return err
	}
	if err := server.Install(ctx, ocm); err != nil { // policies are about works and clusters
		return err
	}
	if printed, err := server.Kubectl(ctx, "apply", "--server-side=false", "--namespace=managed-upgrade-operator", "--kustomize", filepath.Dir(definitionsFolder)).CombinedOutput(); err != nil {
		return fmt.Errorf("applying the manifests of the hub: %w: %s", err, printed)
	}
	return server.Install(ctx, os.DirFS(definitionsFolder))
}
