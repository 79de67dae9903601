// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgradeable waits until no other update is in the way, and until the cluster
// says that it can be taken to the next minor version, if the target is one.
func Upgradeable(r client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := cluster.ReadVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Current.Is(target) {
			return engine.Done("the cluster is at %s or on its way to it", target.Version), nil
		}
		if other, moving := version.MovingTo(); moving {
			return engine.Wait("AnotherUpdateInProgress", "the cluster is being updated to %s", other), nil
		}
		if other, awaited := version.Awaits(); awaited && !other.Is(target) {
			return engine.Wait("AnotherUpdateInProgress", "somebody has asked for %s in spec.desiredUpdate of the cluster version, and it is not at it yet", other), nil
		}
		change, err := cluster.Compare(version.Installed, target.Version)
		if err != nil {
			return engine.Result{}, fmt.Errorf("comparing the installed version with the desired one: %w", err)
		}
		switch {
		case change == cluster.Downgrade:
			return engine.Wait("Downgrade", "%s is older than %s, which is installed", target.Version, version.Installed), nil
		case change.CrossesMinor() && version.Upgradeable.IsFalse():
			return engine.Wait("NotUpgradeable", "%s is a %s from %s, and the cluster is not upgradeable: %s",
				target.Version, change, version.Installed, version.Upgradeable.Why()), nil
		}
		return engine.Done("%s is a %s from %s", target.Version, change, version.Installed), nil
	}
}
