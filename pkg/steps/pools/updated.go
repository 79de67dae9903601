// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"strings"

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
// has observed, or the configuration in its status, is behind its spec.
func Updated(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		behind, err := operatorBehind(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		pools, err := cluster.ReadPools(ctx, r)
		if err != nil {
			return engine.Result{}, err
		}
		waiting, reason := unfinished(pools)
		switch {
		case len(waiting) > 0:
			nodes, err := cluster.ReadNodes(ctx, r)
			if err != nil {
				return engine.Result{}, err
			}
			return engine.Wait(reason, "%s", describe(waiting, nodes)), nil
		case behind != "":
			return engine.Wait("PoolsUpdating", "%s", behind), nil
		}
		return engine.Done("all %d machine config pools are updated", len(pools)), nil
	}
}

// AllUpdated says whether all machine config pools are updated, as Updated understands it.
func AllUpdated(r client.Reader) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		behind, err := operatorBehind(ctx, r)
		if err != nil || behind != "" {
			return false, err
		}
		pools, err := cluster.ReadPools(ctx, r)
		if err != nil {
			return false, err
		}
		waiting, _ := unfinished(pools)
		return len(waiting) == 0, nil
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

// unfinished are the pools that are not updated, or that could not be: those
// that are degraded or paused. The reason is that of the worst.
func unfinished(pools []cluster.Pool) ([]cluster.Pool, string) {
	var waiting []cluster.Pool
	reason := "PoolsUpdating"
	for _, pool := range pools {
		switch {
		case pool.Degraded.IsTrue():
			reason = "PoolDegraded"
		case pool.Paused:
			if reason != "PoolDegraded" {
				reason = "PoolPaused"
			}
		case pool.Updated:
			continue
		}
		waiting = append(waiting, pool)
	}
	return waiting, reason
}

// describe says of each kind of pool, the worst first, how far it is, and
// which of its nodes hold it up.
func describe(pools []cluster.Pool, nodes []cluster.Node) string {
	var degraded, paused, updating []string
	for _, pool := range pools {
		switch {
		case pool.Degraded.IsTrue():
			degraded = append(degraded, fmt.Sprintf("%s (%s)", pool.Name, progress(pool, nodes)+"; "+pool.Degraded.Text()))
		case pool.Paused:
			paused = append(paused, fmt.Sprintf("%s (%s)", pool.Name, progress(pool, nil)))
		default:
			updating = append(updating, fmt.Sprintf("%s (%s)", pool.Name, progress(pool, nodes)))
		}
	}
	var groups []string
	for _, group := range []struct {
		name  string
		pools []string
	}{{"degraded", degraded}, {"paused", paused}, {"updating", updating}} {
		if len(group.pools) > 0 {
			groups = append(groups, fmt.Sprintf("machine config pools %s: %s", group.name, cluster.Names(group.pools)))
		}
	}
	return strings.Join(groups, "; ")
}

func progress(pool cluster.Pool, nodes []cluster.Node) string {
	text := fmt.Sprintf("%d of %d machines", pool.UpdatedMachines, pool.Machines)
	if busy := atWork(pool, nodes); len(busy) > 0 {
		text += "; nodes " + cluster.Names(busy)
	}
	return text
}

// atWork are the nodes of the pool that are being updated. They belong to the
// pool by the configuration that they were told to take: each pool renders its
// own. Those whose turn has not come yet have still the one before.
func atWork(pool cluster.Pool, nodes []cluster.Node) []string {
	var busy []string
	for _, node := range nodes {
		if pool.Config == "" || node.DesiredConfig != pool.Config || !node.Updating {
			continue
		}
		text := node.Name
		if why := strings.Trim(node.State+": "+node.Reason, ": "); why != "" {
			text += " " + why
		}
		busy = append(busy, text)
	}
	return busy
}
