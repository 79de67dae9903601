// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

// server serves the kinds of this package and their runs.
var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

// install applies the definitions as a user does, with kubectl on the client's side.
func install(ctx context.Context) error {
	if printed, err := server.Kubectl(ctx, "apply", "--server-side=false", "--kustomize", definitionsFolder).CombinedOutput(); err != nil {
		return fmt.Errorf("applying the definitions: %w: %s", err, printed)
	}
	objects, err := manifests.Read(os.DirFS(definitionsFolder))
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, server, objects)
}
