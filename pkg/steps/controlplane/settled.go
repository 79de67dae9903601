// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// WaitUntilSettled waits until nothing is being installed any more, neither by the
// cluster version operator nor, in the pools, on the nodes. It does not wait
// for an upgrade that never began: what the cluster is busy with then, or what
// ails a pool, is not ours. A pool that is paused moves nothing.
func WaitUntilSettled(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := clusterstate.GetClusterVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		release, updating := version.UpdatingTo()
		switch {
		case !version.InHistory(target):
			return engine.Done("the upgrade to %s never began", target.Version), nil
		case updating:
			return engine.Wait("Progressing", "the cluster is moving to %s: %s", release, version.Progressing.MessageOrReason()), nil
		case version.Progressing.IsTrue():
			return engine.Wait("Progressing", "the cluster version operator is at work: %s", version.Progressing.MessageOrReason()), nil
		}
		pools, err := clusterstate.ListPools(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		var updatingPools []string
		for _, pool := range pools {
			if !pool.Updated && !pool.Paused {
				updatingPools = append(updatingPools, pool.Name)
			}
		}
		if len(updatingPools) > 0 {
			return engine.Wait("PoolsUpdating", "machine config pools are being updated: %s", text.JoinNames(updatingPools)), nil
		}
		return engine.Done("nothing is being installed"), nil
	}
}
