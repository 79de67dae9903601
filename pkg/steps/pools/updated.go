// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// WaitUntilUpdated waits until the machines of every machine config pool have the
// configuration of the release that the cluster is at.
//
// A pool that says "updated" may not have begun yet, so it is believed only
// after the machine config operator reports the release that is installed, and
// is not at work. It reports a release only when it has rendered that release's
// configurations and the pools that the control plane needs have taken theirs;
// by then the others have their new spec.configuration. From there on a pool
// gives itself away, whatever its conditions still say: the generation that it
// has observed, or the configuration in its status, is behind its spec, or a
// node has another configuration. So a node that joins meanwhile, which comes
// with the old one, is waited for although the pool has not counted it yet.
func WaitUntilUpdated(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		behind, err := mcoBehind(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		pending, count, err := pendingPools(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(pending) > 0:
			return engine.Wait(mostSevere(pending).reason(), "%s", describe(pending)), nil
		case behind != "":
			return engine.Wait("PoolsUpdating", "%s", behind), nil
		}
		return engine.Done("all %d machine config pools are updated", count), nil
	}
}

// AllUpdated says whether all machine config pools are updated, as Updated understands it.
func AllUpdated(r client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		behind, err := mcoBehind(ctx, r)
		if err != nil || behind != "" {
			return false, err
		}
		pending, _, err := pendingPools(ctx, r)
		return err == nil && len(pending) == 0, err
	}
}

// mcoBehind says why the machine config operator may still give the pools
// something to do; empty: it does not.
func mcoBehind(ctx context.Context, r client.Reader) (string, error) {
	version, err := clusterstate.GetClusterVersion(ctx, r)
	if err != nil {
		return "", err
	}
	operator, err := clusterstate.GetClusterOperator(ctx, r, clusterstate.MachineConfigOperator)
	if err != nil {
		return "", err
	}
	switch {
	case version.Current.Version == "" || operator.Version != version.Current.Version:
		return fmt.Sprintf("the machine config operator is at %q, not at %s yet", operator.Version, version.Current), nil
	case operator.Progressing.IsTrue():
		return "the machine config operator is at work: " + operator.Progressing.MessageOrReason(), nil
	}
	return "", nil
}

// poolState is why a pool is not updated, or could not be.
type poolState string

// The worst is first.
const (
	degraded poolState = "degraded"
	paused   poolState = "paused"
	updating poolState = "updating"
)

// poolStatus is a pool that is waited for, with its nodes.
type poolStatus struct {
	state poolState
	pool  clusterstate.Pool
	nodes []clusterstate.Node
}

// pendingPools are the pools that are not updated, or that could not be: those
// that are degraded, and those that are paused and have machines, which may
// have been passed over. It also says how many pools there are.
func pendingPools(ctx context.Context, r client.Reader) (pending []poolStatus, count int, err error) {
	pools, err := clusterstate.ListPools(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	nodes, err := clusterstate.ListNodes(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	members := clusterstate.NodesByPool(pools, nodes)
	for _, pool := range pools {
		t := poolStatus{pool: pool, nodes: members[pool.Name]}
		switch {
		case pool.Degraded.IsTrue():
			t.state = degraded
		case pool.Paused && pool.Empty() && len(t.nodes) == 0:
			continue
		case pool.Paused:
			t.state = paused
		case pool.Updated && !anyNodeOutdated(t.nodes, pool.Config):
			continue
		default:
			t.state = updating
		}
		pending = append(pending, t)
	}
	return pending, len(pools), nil
}

// anyNodeOutdated says whether a node that somebody has told a configuration does
// not have this one.
func anyNodeOutdated(nodes []clusterstate.Node, config string) bool {
	return slices.ContainsFunc(nodes, func(n clusterstate.Node) bool { return n.DesiredConfig != "" && n.CurrentConfig != config })
}

func mostSevere(pending []poolStatus) poolState {
	for _, state := range []poolState{degraded, paused} {
		if slices.ContainsFunc(pending, func(t poolStatus) bool { return t.state == state }) {
			return state
		}
	}
	return updating
}

func (k poolState) reason() string {
	return map[poolState]string{degraded: "PoolDegraded", paused: "PoolPaused", updating: "PoolsUpdating"}[k]
}
