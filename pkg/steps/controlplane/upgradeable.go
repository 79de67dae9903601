// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Upgradeable waits until no other update is in the way, and until the cluster
// says that it can be taken to the next minor version, if the target is one.
func Upgradeable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	noOtherUpdate, condition := NoOtherUpdate(r, target), upgradeableCondition(r, target)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if result, err := noOtherUpdate(ctx, run); err != nil || !result.Passed() {
			return result, err
		}
		return condition(ctx, run)
	}
}

// upgradeableCondition waits until the cluster does not object to leaving its minor version.
func upgradeableCondition(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Current.Matches(target) {
			return alreadyUpdating(target), nil
		}
		change, err := compare(version, target)
		switch {
		case err != nil:
			return engine.Result{}, err
		case change.CrossesMinor() && version.Upgradeable.IsFalse():
			return engine.Wait("NotUpgradeable", "%s is a %s from %s, and the cluster is not upgradeable: %s",
				target.Version, change, version.Installed, version.Upgradeable.ReasonAndMessage()), nil
		}
		return engine.Done("%s is a %s from %s", target.Version, change, version.Installed), nil
	}
}
