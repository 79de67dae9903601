// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pool is what a MachineConfigPool says.
type Pool struct {
	Name   string
	Paused bool
	// Config is the rendered configuration that the machines are to have; empty
	// if the machine config operator has not rendered one.
	Config string
	// Observed says that the machine config operator has seen the pool as it is
	// now. What the pool says of its machines is of an earlier one otherwise.
	Observed bool
	// Updated says that all machines have it, and that this was observed.
	Updated         bool
	Degraded        Condition
	Machines        int32
	UpdatedMachines int32

	selector labels.Selector
}

// Empty says that the pool is known to have no machines.
func (p Pool) Empty() bool { return p.Observed && p.Machines == 0 }

// ListPools reads the MachineConfigPools, sorted by name.
func ListPools(ctx context.Context, r client.Reader) ([]Pool, error) {
	var list mcfgv1.MachineConfigPoolList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the machine config pools: %w", err)
	}
	pools := make([]Pool, 0, len(list.Items))
	for i := range list.Items {
		pools = append(pools, poolOf(&list.Items[i]))
	}
	slices.SortFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}

func poolOf(pool *mcfgv1.MachineConfigPool) Pool {
	status := &pool.Status
	config := pool.Spec.Configuration.Name
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector)
	if err != nil {
		selector = labels.Nothing() // the machine config operator makes no more of it
	}
	observed := status.ObservedGeneration >= pool.Generation
	return Pool{
		Name:     pool.Name,
		Paused:   pool.Spec.Paused,
		Config:   config,
		Observed: observed,
		Updated: observed && config != "" && status.Configuration.Name == config &&
			status.UpdatedMachineCount >= status.MachineCount &&
			poolCondition(status.Conditions, mcfgv1.MachineConfigPoolUpdated).IsTrue(),
		Degraded:        degraded(status.Conditions),
		Machines:        status.MachineCount,
		UpdatedMachines: status.UpdatedMachineCount,
		selector:        selector,
	}
}

// The pools that every cluster has.
const (
	poolMaster = "master"
	poolWorker = "worker"
)

// NodesByPool are the nodes of each pool, by its name. As the machine config
// operator has it, a node is in one pool at most: that of the control plane, or
// else one that somebody made, or else that of the workers.
func NodesByPool(pools []Pool, nodes []Node) map[string][]Node {
	members := make(map[string][]Node, len(pools))
	for _, node := range nodes {
		if pool := poolNameFor(pools, node); pool != "" {
			members[pool] = append(members[pool], node)
		}
	}
	return members
}

// poolNameFor names the pool that the node is in; empty: it is in none.
func poolNameFor(pools []Pool, node Node) string {
	var in string
	for _, pool := range pools {
		switch {
		case !pool.selector.Matches(node.labels):
			continue
		case pool.Name == poolMaster:
			return pool.Name
		case in == "" || in == poolWorker:
			in = pool.Name
		}
	}
	return in
}

// degraded is the pool's own summary, with the message of what it sums up if it has none itself.
func degraded(conditions []mcfgv1.MachineConfigPoolCondition) Condition {
	sum := poolCondition(conditions, mcfgv1.MachineConfigPoolDegraded)
	if sum.Message != "" || !sum.IsTrue() {
		return sum
	}
	for _, part := range []mcfgv1.MachineConfigPoolConditionType{
		mcfgv1.MachineConfigPoolRenderDegraded, mcfgv1.MachineConfigPoolNodeDegraded,
	} {
		if c := poolCondition(conditions, part); c.IsTrue() {
			return c
		}
	}
	return sum
}

func poolCondition(conditions []mcfgv1.MachineConfigPoolCondition, name mcfgv1.MachineConfigPoolConditionType) Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == name {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
		}
	}
	return Condition{}
}
