// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Updated waits until the machines of every machine config pool have the
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
func Updated(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		behind, err := operatorBehind(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		waiting, count, err := unfinished(ctx, r)
		switch {
		case err != nil:
			return engine.Result{}, err
		case len(waiting) > 0:
			return engine.Wait(worst(waiting).reason(), "%s", describe(waiting)), nil
		case behind != "":
			return engine.Wait("PoolsUpdating", "%s", behind), nil
		}
		return engine.Done("all %d machine config pools are updated", count), nil
	}
}

// AllUpdated says whether all machine config pools are updated, as Updated understands it.
func AllUpdated(r client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		behind, err := operatorBehind(ctx, r)
		if err != nil || behind != "" {
			return false, err
		}
		waiting, _, err := unfinished(ctx, r)
		return err == nil && len(waiting) == 0, err
	}
}

// operatorBehind says why the machine config operator may still give the pools
// something to do; empty: it does not.
func operatorBehind(ctx context.Context, r client.Reader) (string, error) {
	version, err := cluster.ReadVersion(ctx, r)
	if err != nil {
		return "", err
	}
	operator, err := cluster.ReadOperator(ctx, r, cluster.MachineConfigOperator)
	if err != nil {
		return "", err
	}
	switch {
	case version.Current.Version == "" || operator.Version != version.Current.Version:
		return fmt.Sprintf("the machine config operator is at %q, not at %s yet", operator.Version, version.Current), nil
	case operator.Progressing.IsTrue():
		return "the machine config operator is at work: " + operator.Progressing.Text(), nil
	}
	return "", nil
}

// kind is why a pool is not updated, or could not be.
type kind string

// The worst is first.
const (
	degraded kind = "degraded"
	paused   kind = "paused"
	updating kind = "updating"
)

// trouble is a pool that is waited for, with its nodes.
type trouble struct {
	kind  kind
	pool  cluster.Pool
	nodes []cluster.Node
}

// unfinished are the pools that are not updated, or that could not be: those
// that are degraded, and those that are paused and have machines, which may
// have been passed over. It also says how many pools there are.
func unfinished(ctx context.Context, r client.Reader) (waiting []trouble, count int, err error) {
	pools, err := cluster.ReadPools(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	nodes, err := cluster.ReadNodes(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	members := cluster.Members(pools, nodes)
	for _, pool := range pools {
		t := trouble{pool: pool, nodes: members[pool.Name]}
		switch {
		case pool.Degraded.IsTrue():
			t.kind = degraded
		case pool.Paused && pool.Empty() && len(t.nodes) == 0:
			continue
		case pool.Paused:
			t.kind = paused
		case pool.Updated && !anyBehind(t.nodes, pool.Config):
			continue
		default:
			t.kind = updating
		}
		waiting = append(waiting, t)
	}
	return waiting, len(pools), nil
}

// anyBehind says whether a node that somebody has told a configuration does
// not have this one.
func anyBehind(nodes []cluster.Node, config string) bool {
	return slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.DesiredConfig != "" && n.CurrentConfig != config })
}

func worst(waiting []trouble) kind {
	for _, kind := range []kind{degraded, paused} {
		if slices.ContainsFunc(waiting, func(t trouble) bool { return t.kind == kind }) {
			return kind
		}
	}
	return updating
}

func (k kind) reason() string {
	return map[kind]string{degraded: "PoolDegraded", paused: "PoolPaused", updating: "PoolsUpdating"}[k]
}
