// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

var rolloutCheck = Check{
	Name:  "rollout",
	Doc:   "An update is still being installed, on the control plane or on the nodes of a pool.",
	Reads: []client.Object{&configv1.ClusterVersion{}, &configv1.ClusterOperator{}, &mcfgv1.MachineConfigPool{}, &corev1.Node{}},
	Find:  func(ctx context.Context, in Input) ([]Finding, error) { return Unsettled(ctx, in.Reader) },
}

// Unsettled returns what is still being installed, by the cluster version operator or, in the pools,
// on the nodes; nothing means that the cluster is settled. It is the only answer to that question:
// the health gates and the cleanup of an upgrade use it. A paused pool rolls out nothing.
func Unsettled(ctx context.Context, r client.Reader) ([]Finding, error) {
	version, err := clusterstate.GetClusterVersion(ctx, r)
	if err != nil {
		return nil, err
	}
	if f, updating := controlPlaneUpdating(version); updating {
		return []Finding{f}, nil
	}
	rollout, err := rolloutOf(ctx, r, version)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, p := range rollout.Pending {
		if p.RollingOut() {
			found = append(found, poolFinding("PoolUpdating", "machine config pools being updated", p.Pool))
		}
	}
	if len(found) == 0 && rollout.OperatorBehind != "" {
		f := newFinding("MachineConfigOperatorBehind", rollout.OperatorBehind)
		f.Key = "ClusterOperator/" + clusterstate.MachineConfigOperator
		found = append(found, f)
	}
	return found, nil
}

func controlPlaneUpdating(version clusterstate.Version) (Finding, bool) {
	f := newFinding("ControlPlaneUpdating", "the cluster version operator is installing an update")
	f.Key = keyClusterVersion
	release, updating := version.UpdatingTo()
	switch {
	case updating:
		f.Summary = fmt.Sprintf("the cluster is being updated to %s", release)
	case !version.Progressing.IsTrue():
		return Finding{}, false
	}
	f.Description = version.Progressing.MessageOrReason()
	return f, true
}

// Rollout is the state of the rollout of the installed release to the nodes.
type Rollout struct {
	// OperatorBehind is why the machine config operator may still change the pools; empty means that
	// it will not.
	OperatorBehind string
	// Pools are all pools, sorted by name.
	Pools []clusterstate.Pool
	// Pending are the pools that are not updated, or that may have been skipped: those that are
	// degraded, and those that are paused although they have machines.
	Pending []PendingPool
}

// PoolState is why a pool is pending.
type PoolState string

// The states, the most severe first.
const (
	PoolDegraded PoolState = "degraded"
	PoolPaused   PoolState = "paused"
	PoolUpdating PoolState = "updating"
)

// PendingPool is a pool that is not updated, with its nodes.
type PendingPool struct {
	State PoolState
	Pool  clusterstate.Pool
	Nodes []clusterstate.Node
}

// RollingOut reports whether nodes of the pool are still to be updated and nothing pauses that.
func (p PendingPool) RollingOut() bool {
	return !p.Pool.Paused && (!p.Pool.Updated || anyNodeOutdated(p.Nodes, p.Pool.Config))
}

// upToDate reports whether no node of the pool is to be updated, although it is pending.
func (p PendingPool) upToDate() bool {
	return p.State == PoolPaused && p.Pool.Updated && !anyNodeOutdated(p.Nodes, p.Pool.Config)
}

// Outdated returns the pending pools with machines that do not have the configuration of the installed
// release, and those that are degraded. Paused ones whose machines are all updated are left out.
func (r Rollout) Outdated() []PendingPool {
	return slices.DeleteFunc(slices.Clone(r.Pending), PendingPool.upToDate)
}

// UpToDate reports whether nothing is to be updated in a pool, paused or not. While the machine config
// operator may still change the pools, that is not known of any.
func (r Rollout) UpToDate(pool string) bool {
	known := slices.ContainsFunc(r.Pools, func(p clusterstate.Pool) bool { return p.Name == pool })
	return known && r.OperatorBehind == "" &&
		!slices.ContainsFunc(r.Pending, func(p PendingPool) bool { return p.Pool.Name == pool && !p.upToDate() })
}

// Nodes returns the nodes of the pools that are not updated.
func (r Rollout) Nodes() []clusterstate.Node {
	var nodes []clusterstate.Node
	for _, p := range r.Pending {
		nodes = append(nodes, p.Nodes...)
	}
	return nodes
}

// Complete reports whether the machines of every pool have the configuration of the installed
// release.
func (r Rollout) Complete() bool { return r.OperatorBehind == "" && len(r.Pending) == 0 }

// GetRollout reads the state of the rollout.
//
// A pool that reports "updated" may not have begun yet, so it counts only once the machine config
// operator reports the installed release and is not progressing. It reports a release only when it
// has rendered that release's configurations and the pools that the control plane needs have theirs;
// by then the others have their new spec.configuration. From then on a pool that is not updated
// cannot hide: the observed generation or the configuration in its status is behind its spec, or a
// node has another configuration. Therefore a node that joins meanwhile, with the old configuration,
// counts although the pool has not counted it yet.
func GetRollout(ctx context.Context, r client.Reader) (Rollout, error) {
	version, err := clusterstate.GetClusterVersion(ctx, r)
	if err != nil {
		return Rollout{}, err
	}
	return rolloutOf(ctx, r, version)
}

func rolloutOf(ctx context.Context, r client.Reader, version clusterstate.Version) (Rollout, error) {
	behind, err := operatorBehind(ctx, r, version)
	if err != nil {
		return Rollout{}, err
	}
	pools, err := clusterstate.ListPools(ctx, r)
	if err != nil {
		return Rollout{}, err
	}
	if len(pools) == 0 {
		return Rollout{}, errors.New("the cluster has no machine config pools, so the state of its nodes is unknown")
	}
	nodes, err := clusterstate.GetNodes(ctx, r)
	if err != nil {
		return Rollout{}, err
	}
	rollout := RolloutOf(pools, nodes)
	rollout.OperatorBehind = behind
	return rollout, nil
}

// RolloutOf returns the state of the rollout of the configurations that the pools have now, whatever
// release they are of.
func RolloutOf(pools []clusterstate.Pool, nodes clusterstate.Nodes) Rollout {
	return Rollout{Pools: pools, Pending: pendingPools(pools, nodes)}
}

// IsInstalled reports whether the target is completely installed: on the control plane, and on the
// nodes of every pool. It is the only answer to the question whether an upgrade has nothing to do.
func IsInstalled(ctx context.Context, r client.Reader, target clusterstate.Target) (bool, error) {
	version, err := clusterstate.GetClusterVersion(ctx, r)
	if err != nil || !version.Current.Matches(target) || !version.Completed {
		return false, err
	}
	rollout, err := rolloutOf(ctx, r, version)
	return err == nil && rollout.Complete(), err
}

func operatorBehind(ctx context.Context, r client.Reader, version clusterstate.Version) (string, error) {
	// They are listed, because the operator may not get single ones from the API server.
	operators, err := clusterstate.ListClusterOperators(ctx, r)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(operators, func(o clusterstate.ClusterOperator) bool { return o.Name == clusterstate.MachineConfigOperator })
	if at < 0 {
		return "", fmt.Errorf("the cluster has no cluster operator %s, so the state of its nodes is unknown", clusterstate.MachineConfigOperator)
	}
	operator := operators[at]
	switch {
	case version.Current.Version == "" || operator.Version != version.Current.Version:
		return fmt.Sprintf("the machine config operator is at %q, not at %s yet", operator.Version, version.Current), nil
	case operator.Progressing.IsTrue():
		return "the machine config operator is progressing: " + operator.Progressing.MessageOrReason(), nil
	}
	return "", nil
}

// members is what decides about a pool of the nodes in it.
type members struct{ any, outdated bool }

func pendingPools(pools []clusterstate.Pool, nodes clusterstate.Nodes) []PendingPool {
	byPool, configs := make(map[string]members, len(pools)), make(map[string]string, len(pools))
	for _, pool := range pools {
		configs[pool.Name] = pool.Config
	}
	for _, node := range nodes.All() {
		if name := clusterstate.PoolOf(pools, node); name != "" {
			byPool[name] = members{any: true, outdated: byPool[name].outdated || IsOutdated(node, configs[name])}
		}
	}
	var pending []PendingPool
	for _, pool := range pools {
		p, in := PendingPool{Pool: pool}, byPool[pool.Name]
		switch {
		case pool.Degraded.IsTrue():
			p.State = PoolDegraded
		case pool.Paused && pool.Empty() && !in.any:
			continue
		case pool.Paused:
			p.State = PoolPaused
		case pool.Updated && !in.outdated:
			continue
		default:
			p.State = PoolUpdating
		}
		for _, node := range nodes.All() {
			if clusterstate.PoolOf(pools, node) == pool.Name {
				p.Nodes = append(p.Nodes, node)
			}
		}
		pending = append(pending, p)
	}
	return pending
}

func anyNodeOutdated(nodes []clusterstate.Node, config string) bool {
	return slices.ContainsFunc(nodes, func(n clusterstate.Node) bool { return IsOutdated(n, config) })
}
