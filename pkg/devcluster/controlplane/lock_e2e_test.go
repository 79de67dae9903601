// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package controlplane_test

import (
	"errors"
	"os"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

func TestLock_admits_one_control_plane_per_folder(t *testing.T) {
	t.Parallel()
	running := start(t, controlplane.Options{WithoutControllerManager: true})
	if owner, err := controlplane.Owner(running.Dir()); err != nil || owner != os.Getpid() {
		t.Errorf("the folder's owner is %d (%v), want this process", owner, err)
	}
	_, err := controlplane.Start(t.Context(), controlplane.Options{WithoutControllerManager: true, Dir: running.Dir()})
	if !errors.Is(err, controlplane.ErrInUse) {
		t.Fatalf("a second control plane in the same folder: got %v", err)
	}
	if len(running.PIDs()) != 2 {
		t.Errorf("the refusal disturbed the first one: %v", running.PIDs())
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	if owner, err := controlplane.Owner(running.Dir()); err != nil || owner != 0 {
		t.Errorf("the folder's owner is %d (%v) after the end", owner, err)
	}
}
