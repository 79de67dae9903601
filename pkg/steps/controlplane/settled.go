// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Settled waits until nothing is being installed any more, neither by the
// cluster version operator nor, in the pools, on the nodes. It does not wait
// for an upgrade that never began: what the cluster is busy with then, or what
// ails a pool, is not ours. A pool that is paused moves nothing.
func Settled(r client.Reader, target cluster.Target) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		version, err := cluster.ReadVersion(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		release, moving := version.MovingTo()
		switch {
		case !version.Began(target):
			return engine.Done("the upgrade to %s never began", target.Version), nil
		case moving:
			return engine.Wait("Progressing", "the cluster is moving to %s: %s", release, version.Progressing.Text()), nil
		case version.Progressing.IsTrue():
			return engine.Wait("Progressing", "the cluster version operator is at work: %s", version.Progressing.Text()), nil
		}
		pools, err := cluster.ReadPools(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		var moved []string
		for _, pool := range pools {
			if !pool.Updated && !pool.Paused {
				moved = append(moved, pool.Name)
			}
		}
		if len(moved) > 0 {
			return engine.Wait("PoolsUpdating", "machine config pools are being updated: %s", cluster.Names(moved)), nil
		}
		return engine.Done("nothing is being installed"), nil
	}
}
