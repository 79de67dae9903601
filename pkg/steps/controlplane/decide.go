// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Decision determines from a ClusterVersion whether the target may be requested. Gates make the
// same decisions ahead of time, and they are made once more right before the patch.
type Decision func(clusterstate.Version, clusterstate.Target) (engine.Result, error)

// decide returns a step that makes the decisions in order until one does not pass.
func decide(r client.Reader, target clusterstate.Target, decisions ...Decision) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		return decideAll(version, target, decisions)
	}
}

// decideAll returns the result of the last decision, or of the first one that does not pass. If the
// cluster is already being updated to the target, it makes no decisions.
func decideAll(version clusterstate.Version, target clusterstate.Target, decisions []Decision) (engine.Result, error) {
	result := alreadyUpdating(target)
	if version.Observe(target).HasBegun() {
		return result, nil
	}
	for _, decision := range decisions {
		var err error
		if result, err = decision(version, target); err != nil || !result.Passed() {
			return result, err
		}
	}
	return result, nil
}

// alreadyUpdating returns the result for a cluster that has started to install the target.
func alreadyUpdating(target clusterstate.Target) engine.Result {
	return engine.Done("the cluster is at %s or being updated to it", target.Version)
}
