// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pool is what a MachineConfigPool says.
type Pool struct {
	Name   string
	Paused bool
	// Config is the rendered configuration that the machines are to have; empty
	// if the machine config operator has not rendered one.
	Config string
	// Updated says that all machines have it, and that this was seen of the
	// pool as it is now.
	Updated         bool
	Degraded        Condition
	Machines        int32
	UpdatedMachines int32
}

// ReadPools reads the MachineConfigPools, sorted by name.
func ReadPools(ctx context.Context, r client.Reader) ([]Pool, error) {
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
	return Pool{
		Name:   pool.Name,
		Paused: pool.Spec.Paused,
		Config: config,
		Updated: status.ObservedGeneration >= pool.Generation &&
			config != "" && status.Configuration.Name == config &&
			status.UpdatedMachineCount >= status.MachineCount &&
			poolCondition(status.Conditions, mcfgv1.MachineConfigPoolUpdated).IsTrue(),
		Degraded:        degraded(status.Conditions),
		Machines:        status.MachineCount,
		UpdatedMachines: status.UpdatedMachineCount,
	}
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
