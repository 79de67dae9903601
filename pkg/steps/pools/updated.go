// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilUpdated waits until the machines of all machine config pools have the configuration of
// the installed release; see checks.GetRollout. Its message explains what holds up long drains; the
// zero Drains explains nothing.
func WaitUntilUpdated(r client.Reader, drains checks.Drains) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		rollout, err := checks.GetRollout(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(rollout.Pending()) > 0:
			return waitForPools(ctx, run, drains, rollout.Pending()), nil
		case rollout.OperatorBehind != "":
			return engine.Wait("PoolsUpdating", "%s", rollout.OperatorBehind), nil
		}
		return engine.Done("all %d machine config pools are updated", len(rollout.Pools)), nil
	}
}

// waitForPools returns the result of a pass with pending pools. Its message explains what holds up
// long drains.
func waitForPools(ctx context.Context, run engine.Run, drains checks.Drains, pending []*clusterstate.PoolProgress) engine.Result {
	d := describer{
		now:     run.Now,
		explain: func(node clusterstate.Node) string { return drains.Explain(ctx, node, run.Started, run.Now) },
		isLong:  func(node clusterstate.Node) bool { return drains.IsLong(node, run.Started, run.Now) },
	}
	result := engine.Wait(reason(pending), "%s", d.describe(pending)).WithProgress(
		engine.Progress(clusterstate.Progress(run.Progress).Observe(awaited(pending, drains), run.Now)))
	if at := drains.NextChange(nodesOf(pending), run.Started, run.Now); !at.IsZero() {
		return result.NoLaterThan(at.Sub(run.Now))
	}
	return result
}

// nodesOf returns the nodes of the pools.
func nodesOf(pools []*clusterstate.PoolProgress) []clusterstate.Node {
	var nodes []clusterstate.Node
	for _, p := range pools {
		for i := range p.Nodes {
			nodes = append(nodes, *p.Nodes[i].Node)
		}
	}
	return nodes
}

// awaited returns the reports of the nodes that the pools wait for, and the pods that hold up the
// explained drains.
func awaited(pending []*clusterstate.PoolProgress, drains checks.Drains) clusterstate.Awaited {
	var a clusterstate.Awaited
	for _, p := range pending {
		a.AddPool(p, drains.Left)
	}
	return a
}

// AllUpdated reports whether all machine config pools are updated, like WaitUntilUpdated. A
// negative answer is confirmed with the API server, because the upgrade may fail because of it.
func AllUpdated(r, live client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		rollout, err := checks.GetRollout(ctx, r)
		if err == nil && !rollout.Complete() {
			rollout, err = checks.GetRollout(ctx, live)
		}
		return err == nil && rollout.Complete(), err
	}
}

// reason returns the reason for the most severe state.
func reason(pending []*clusterstate.PoolProgress) string {
	has := func(state clusterstate.PoolState) bool {
		return slices.ContainsFunc(pending, func(p *clusterstate.PoolProgress) bool { return p.State() == state })
	}
	switch {
	case has(clusterstate.PoolDegraded):
		return "PoolDegraded"
	case has(clusterstate.PoolPaused):
		return "PoolPaused"
	}
	return "PoolsUpdating"
}
