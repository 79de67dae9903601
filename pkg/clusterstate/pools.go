// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pool holds the facts about a MachineConfigPool.
type Pool struct {
	Name            string
	ResourceVersion string
	// Labels holds the labels of the pool itself. They are dropped if LabelsTooLong is set.
	Labels        map[string]string
	LabelsTooLong bool
	Paused        bool
	// Mark is the operator's mark, regardless of whether the pool is paused. It is nil if there is no valid
	// mark.
	Mark *PoolMark
	// Config is the rendered configuration that the machines should have, or empty if the machine config
	// operator has not rendered one.
	Config string
	// Observed is set if the status is up to date with the spec.
	Observed bool
	// Updated is set if all machines are observed to have Config.
	Updated  bool
	Degraded Condition
	// NodeDegraded is the condition NodeDegraded: a node of the pool is degraded.
	NodeDegraded    Condition
	Machines        int32
	UpdatedMachines int32

	UID types.UID
	// StatusConfig is the last rendered configuration that all machines had.
	StatusConfig string
	// Updating is the condition Updating.
	Updating Condition
	// MaxUnavailable is the number or percentage of machines that may be unavailable at a time. It is nil for
	// the default of 1.
	MaxUnavailable *intstr.IntOrString
	// Certificates lists the certificates of the machines.
	Certificates []Certificate

	selector labels.Selector
}

// Empty reports whether the pool is known to have no machines.
func (p Pool) Empty() bool { return p.Observed && p.Machines == 0 }

// HoldsBackWorkers reports whether an outdated pool of worker nodes is paused, so a user must start the
// update of its nodes.
func HoldsBackWorkers(pools []Pool) bool {
	return slices.ContainsFunc(pools, func(p Pool) bool { return p.Paused && !p.Updated && !p.Required() && !p.Empty() })
}

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

// NewPool converts a MachineConfigPool.
func NewPool(pool *mcfgv1.MachineConfigPool) Pool {
	status := &pool.Status
	config := pool.Spec.Configuration.Name
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector)
	if err != nil || selector.Empty() {
		selector = labels.Nothing() // like the machine config operator
	}
	// Fail closed: with an overlong selector, it is unknown which nodes belong to the pool.
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
		NodeDegraded:    poolCondition(status.Conditions, mcfgv1.MachineConfigPoolNodeDegraded),
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

// Slots returns how many of the given number of machines may be unavailable at a time. Like the machine
// config operator, it returns at least 1.
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

// Pools that exist in every cluster.
const (
	PoolMaster  = "master"
	poolWorker  = "worker"
	poolArbiter = "arbiter" // only in clusters with two control plane nodes
)

// labelRequired labels the pools that machine-config waits for.
const labelRequired = "operator.machineconfiguration.openshift.io/required-for-upgrade"

// PoolRole describes the purpose of a pool's nodes.
type PoolRole string

// Roles of pools.
const (
	// RoleControlPlane is the pool of the control plane nodes.
	RoleControlPlane PoolRole = "ControlPlane"
	// RoleRequired is any other pool that the control plane update waits for, such as the pool of arbiter
	// nodes.
	RoleRequired PoolRole = "Required"
	// RoleWorker is the pool of the nodes that belong to no custom pool.
	RoleWorker PoolRole = "Worker"
	// RoleCustom is any other pool.
	RoleCustom PoolRole = "Custom"
)

// Role returns the purpose of the pool's nodes. All code must use it. The machine config operator identifies
// the control plane pool by name.
func (p Pool) Role() PoolRole {
	_, required := p.Labels[labelRequired]
	switch {
	case p.Name == PoolMaster:
		return RoleControlPlane
	case required:
		return RoleRequired
	case p.Name == poolWorker:
		return RoleWorker
	}
	return RoleCustom
}

// Required reports whether the control plane update waits for the pool, which therefore must not be held
// back. A pool with unknown labels may be required.
func (p Pool) Required() bool {
	role := p.Role()
	return role == RoleControlPlane || role == RoleRequired || p.LabelsTooLong
}

// PoolOf returns the name of a node's pool, or "" if it has none. Like the machine config operator, it
// assigns a node to at most one pool. The control plane pool comes first, then a custom pool, then the
// arbiter pool, then the worker pool. A node selected by several custom pools belongs to none of them. See
// ConflictingPools. Windows nodes belong to no pool.
func PoolOf(pools []Pool, node *Node) string {
	in, _ := poolOf(pools, node)
	return in
}

// ConflictingPools returns the custom pools that select the node if there are several. The machine config
// operator ignores such a node and updates its pools without it.
func ConflictingPools(pools []Pool, node *Node) []string {
	if _, custom := poolOf(pools, node); custom < 2 {
		return nil
	}
	var names []string
	for i := range pools {
		if pools[i].IsCustom() && pools[i].selector.Matches(node.labels) {
			names = append(names, pools[i].Name)
		}
	}
	return names
}

// poolOf returns the name of a node's pool and the number of custom pools that select the node.
func poolOf(pools []Pool, node *Node) (in string, custom int) {
	if node.isWindows() {
		return "", 0
	}
	rank := 0
	for i := range pools {
		pool := &pools[i]
		if !pool.selector.Matches(node.labels) {
			continue
		}
		if pool.IsCustom() {
			custom++
		}
		if of := slices.Index(poolOrder, pool.orderedName()) + 1; of > rank {
			in, rank = pool.Name, of
		}
	}
	if custom > 1 {
		return "", custom
	}
	return in, custom
}

// poolOrder lists the pools in ascending order of precedence. The empty name stands for custom pools.
var poolOrder = []string{poolWorker, poolArbiter, "", PoolMaster}

// orderedName returns the pool's name in poolOrder.
func (p *Pool) orderedName() string {
	if p.IsCustom() {
		return ""
	}
	return p.Name
}

// IsCustom reports whether the machine config operator treats the pool as custom. It decides this by name.
func (p *Pool) IsCustom() bool {
	return p.Name != PoolMaster && p.Name != poolWorker && p.Name != poolArbiter
}

// degraded returns the summary condition Degraded. If it has no message, it gets the messages of the
// conditions that it summarizes.
func degraded(conditions []mcfgv1.MachineConfigPoolCondition) Condition {
	sum := poolCondition(conditions, mcfgv1.MachineConfigPoolDegraded)
	if sum.Message != "" || !sum.IsTrue() {
		return sum
	}
	var parts []string
	for i := range conditions {
		c := &conditions[i]
		if c.Type == mcfgv1.MachineConfigPoolDegraded || !isDegradedCondition(c) || c.Status != corev1.ConditionTrue {
			continue
		}
		sum.Reason = cmp.Or(sum.Reason, c.Reason)
		parts = append(parts, cmp.Or(sanitize(c.Message), sanitize(c.Reason), string(c.Type)))
	}
	sum.Message = strings.Join(parts, "; ")
	return sum
}

// isDegradedCondition reports whether a pool condition reports a degraded state.
func isDegradedCondition(c *mcfgv1.MachineConfigPoolCondition) bool {
	return strings.HasSuffix(string(c.Type), string(mcfgv1.MachineConfigPoolDegraded))
}

func poolCondition(conditions []mcfgv1.MachineConfigPoolCondition, name mcfgv1.MachineConfigPoolConditionType) Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == name {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}
		}
	}
	return Condition{}
}
