// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pool holds the facts of a MachineConfigPool.
type Pool struct {
	Name            string
	ResourceVersion string
	// Labels are those of the pool itself. They are dropped if LabelsTooLong.
	Labels        map[string]string
	LabelsTooLong bool
	Paused        bool
	// Mark is the mark of the operator, whether the pool is paused or not; nil means that it has none,
	// or an invalid one.
	Mark *PoolMark
	// Config is the rendered configuration that the machines are to have; empty means that the
	// machine config operator has not rendered one.
	Config string
	// Observed reports that the status is that of the current spec.
	Observed bool
	// Updated reports that all machines have Config, and that this was observed.
	Updated         bool
	Degraded        Condition
	Machines        int32
	UpdatedMachines int32

	UID types.UID
	// StatusConfig is the rendered configuration that all machines had last.
	StatusConfig string
	// Updating is the condition of that name.
	Updating Condition
	// MaxUnavailable is the number of machines, or the percentage of them, that may be unavailable at
	// a time; nil means the default, which is 1.
	MaxUnavailable *intstr.IntOrString
	// Certificates are those that the machines have, with their expiry.
	Certificates []Certificate

	selector labels.Selector
}

// Empty reports whether the pool is known to have no machines.
func (p Pool) Empty() bool { return p.Observed && p.Machines == 0 }

// ListPools lists the MachineConfigPools, sorted by name.
func ListPools(ctx context.Context, r client.Reader) ([]Pool, error) {
	var list mcfgv1.MachineConfigPoolList
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the machine config pools: %w", err)
	}
	pools := make([]Pool, 0, len(list.Items))
	for i := range list.Items {
		pools = append(pools, NewPool(&list.Items[i]))
	}
	slices.SortFunc(pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return pools, nil
}

// NewPool returns the facts of a MachineConfigPool.
func NewPool(pool *mcfgv1.MachineConfigPool) Pool {
	status := &pool.Status
	config := pool.Spec.Configuration.Name
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector)
	if err != nil {
		selector = labels.Nothing() // the machine config operator ignores it, too
	}
	// Fail closed: it is not known which nodes belong to a pool whose selector is too long.
	observed := status.ObservedGeneration >= pool.Generation && !isTooLong(pool.Spec.NodeSelector)
	_, tooLong := pool.Labels[labelsTooLong]
	return Pool{
		Name: pool.Name, ResourceVersion: pool.ResourceVersion, Labels: pool.Labels, LabelsTooLong: tooLong,
		Paused:   pool.Spec.Paused,
		Mark:     markOf(pool),
		Config:   config,
		Observed: observed,
		Updated: observed && config != "" && status.Configuration.Name == config &&
			status.UpdatedMachineCount >= status.MachineCount &&
			poolCondition(status.Conditions, mcfgv1.MachineConfigPoolUpdated).IsTrue(),
		Degraded:        degraded(status.Conditions),
		Machines:        status.MachineCount,
		UpdatedMachines: status.UpdatedMachineCount,
		UID:             pool.UID,
		StatusConfig:    status.Configuration.Name,
		Updating:        poolCondition(status.Conditions, mcfgv1.MachineConfigPoolUpdating),
		MaxUnavailable:  pool.Spec.MaxUnavailable,
		Certificates:    certificates(status.CertExpirys),
		selector:        selector,
	}
}

// Certificate is a certificate of the machines of a pool.
type Certificate struct {
	Bundle, Subject string
	Expiry          time.Time
}

func certificates(expirys []mcfgv1.CertExpiry) []Certificate {
	var known []Certificate
	for _, e := range expirys {
		if e.Expiry != nil {
			known = append(known, Certificate{Bundle: e.Bundle, Subject: e.Subject, Expiry: e.Expiry.Time})
		}
	}
	return known
}

// Slots returns how many machines of the pool may be unavailable at a time, of that many, as the
// machine config operator counts them: at least 1.
func (p Pool) Slots(machines int) int {
	if p.MaxUnavailable == nil {
		return 1
	}
	slots, err := intstr.GetScaledValueFromIntOrPercent(p.MaxUnavailable, machines, false)
	if err != nil {
		return 1
	}
	return max(slots, 1)
}

// The pools of every cluster.
const (
	PoolMaster = "master"
	poolWorker = "worker"
)

// PoolOf returns the name of the node's pool; empty means that it is in none. A node is in at most
// one pool, as for the machine config operator: that of the control plane, else a custom one, else
// that of the workers. Windows nodes are in none.
func PoolOf(pools []Pool, node Node) string {
	if node.isWindows() {
		return ""
	}
	var in string
	for _, pool := range pools {
		switch {
		case !pool.selector.Matches(node.labels):
			continue
		case pool.Name == PoolMaster:
			return pool.Name
		case in == "" || in == poolWorker:
			in = pool.Name
		}
	}
	return in
}

// degraded returns the pool's own summary, or a condition with a message that it sums up if it has
// no message itself.
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
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}
