// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"os"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
)

// server serves the kinds of this package, the other group with an UpgradeConfig, and the kinds of OpenShift.
var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

// install applies the definitions of this project as a user does, with kubectl on the client's side.
func install(ctx context.Context) error {
	if err := server.Install(ctx, openshift.Files); err != nil {
		return err
	}
	if err := server.InstallAsUser(ctx, definitionsFolder); err != nil {
		return err
	}
	return server.AwaitKinds(ctx, len(samples), "--api-group=managedupgrade.appuio.io")
}
