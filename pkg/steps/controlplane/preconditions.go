// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Precondition determines from a ClusterVersion whether the target may be requested. Gates check the
// same preconditions ahead of time, and they are checked once more right before the patch.
type Precondition func(clusterstate.Version, clusterstate.Target) (engine.Result, error)

// check returns a step that checks the preconditions in order until one does not pass.
func check(r client.Reader, target clusterstate.Target, preconditions ...Precondition) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		return checkAll(version, target, preconditions)
	}
}

// checkAll returns the result of the last precondition, or of the first one that does not pass. If the
// cluster is already being updated to the target, it checks none.
func checkAll(version clusterstate.Version, target clusterstate.Target, preconditions []Precondition) (engine.Result, error) {
	result := alreadyUpdating(target)
	if version.Observe(target).HasBegun() {
		return result, nil
	}
	for _, precondition := range preconditions {
		var err error
		if result, err = precondition(version, target); err != nil || !result.Passed() {
			return result, err
		}
	}
	return result, nil
}

// alreadyUpdating returns the result for a cluster that has started to install the target.
func alreadyUpdating(target clusterstate.Target) engine.Result {
	return engine.Done("the cluster is at %s or being updated to it", target.Version)
}
