// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1alpha1_test

import (
	"context"
	"os"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

const namespace = "upgrades"

// server serves the kinds as they are deployed.
var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

func install(ctx context.Context) error {
	return server.Install(ctx, os.DirFS("../../../deploy/crds"))
}
