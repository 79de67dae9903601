// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pools_test

import (
	"context"
	"os"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// server serves the OpenShift kinds.
var server = devtest.APIServer{Namespace: "managed-upgrade-operator"}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, func(ctx context.Context) error {
		objects, err := manifests.Read(crds.Files)
		if err != nil {
			return err
		}
		if err := mcfgv1.Install(server.Scheme()); err != nil {
			return err
		}
		return manifests.Apply(ctx, server, objects)
	}))
}
