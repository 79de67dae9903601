// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// NoOtherUpdate waits until no other update is in the way of the target: none is
// being installed or asked for, and none has led the cluster past it.
func NoOtherUpdate(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		if version.Current.Matches(target) {
			return alreadyUpdating(target), nil
		}
		if other, updating := version.UpdatingTo(); updating {
			return engine.Wait("AnotherUpdateInProgress", "the cluster is being updated to %s", other), nil
		}
		if other, pending := version.PendingRequest(); pending && !other.Matches(target) {
			return engine.Wait("AnotherUpdateInProgress", "somebody has asked for %s in spec.desiredUpdate of the cluster version, and it is not at it yet", other), nil
		}
		change, err := compare(version, target)
		switch {
		case err != nil:
			return engine.Result{}, err
		case change == clusterstate.Downgrade:
			return engine.Wait("Downgrade", "%s is older than %s, which is installed", target.Version, version.Installed), nil
		}
		return engine.Done("%s is a %s from %s", target.Version, change, version.Installed), nil
	}
}

// compare says what it means to go from what is installed to the target.
func compare(version clusterstate.Version, target clusterstate.Target) (clusterstate.ChangeType, error) {
	change, err := clusterstate.CompareVersions(version.Installed, target.Version)
	if err != nil {
		return change, fmt.Errorf("comparing the installed version with the desired one: %w", err)
	}
	return change, nil
}

// alreadyUpdating is the answer about a cluster that has begun with the target.
func alreadyUpdating(target clusterstate.Target) engine.Result {
	return engine.Done("the cluster is at %s or on its way to it", target.Version)
}
