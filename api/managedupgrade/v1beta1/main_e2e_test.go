// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
)

// server serves the kinds of this package, those of the other group with an UpgradeConfig, and those
// of OpenShift.
var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

// install applies the definitions: those of this project as a user does, with kubectl on the
// client's side.
func install(ctx context.Context) error {
	objects, err := manifests.Read(openshift.Files)
	if err != nil {
		return err
	}
	if err := manifests.Apply(ctx, server, objects); err != nil {
		return err
	}
	if printed, err := server.Kubectl(ctx, "apply", "--server-side=false", "--kustomize", definitionsFolder).CombinedOutput(); err != nil {
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
		printed, err := server.Kubectl(ctx, "api-resources", "--api-group=managedupgrade.appuio.io", "--output=name", "--cached=false").Output()
		return err == nil && len(strings.Fields(string(printed))) == kinds, nil
	})
}
