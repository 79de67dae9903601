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

// Pool holds the facts of a MachineConfigPool.
type Pool struct {
	Name            string
	ResourceVersion string
	// Labels are the labels of the pool itself. They are dropped if LabelsTooLong.
	Labels        map[string]string
	LabelsTooLong bool
	Paused        bool
	// Mark is the mark of the operator, whether the pool is paused or not; nil if it has none, or an
	// invalid one.
	Mark *PoolMark
	// Config is the rendered configuration that the machines are to have; empty if the machine
	// config operator has not rendered one.
	Config string
	// Observed reports that the status belongs to the current spec.
	Observed bool
	// Updated reports that all machines have Config, and that this was observed.
	Updated  bool
	Degraded Condition
	// NodeDegraded is the condition of that name: a node of the pool is degraded.
	NodeDegraded    Condition
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

// HoldsBackWorkers reports whether a pool of worker nodes is paused and not updated, so a person has to start the
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

// NewPool returns the facts of a MachineConfigPool.
func NewPool(pool *mcfgv1.MachineConfigPool) Pool {
	status := &pool.Status
	config := pool.Spec.Configuration.Name
	selector, err := metav1.LabelSelectorAsSelector(pool.Spec.NodeSelector)
	if err != nil || selector.Empty() {
		selector = labels.Nothing() // as for the machine config operator
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
	PoolMaster  = "master"
	poolWorker  = "worker"
	poolArbiter = "arbiter" // clusters with two nodes of the control plane have it
)

// labelRequired is the label of the pools that the operator machine-config waits for.
const labelRequired = "operator.machineconfiguration.openshift.io/required-for-upgrade"

// PoolRole describes what the nodes of a pool are for.
type PoolRole string

// The roles.
const (
	// RoleControlPlane is the pool of the nodes of the control plane.
	RoleControlPlane PoolRole = "ControlPlane"
	// RoleRequired is another pool that the update of the control plane waits for, such as the one of
	// arbiter nodes.
	RoleRequired PoolRole = "Required"
	// RoleWorker is the pool of the nodes that are in no custom pool.
	RoleWorker PoolRole = "Worker"
	// RoleCustom is any other pool.
	RoleCustom PoolRole = "Custom"
)

// Role returns what the nodes of the pool are for. It is the only answer to that question. The machine
// config operator finds the pool of the control plane by its name.
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

// Required reports whether the update of the control plane waits for the pool, so nothing may hold it
// back. A pool whose labels are unknown may be required.
func (p Pool) Required() bool {
	role := p.Role()
	return role == RoleControlPlane || role == RoleRequired || p.LabelsTooLong
}

// PoolOf returns the name of the node's pool, or "" if it is in no pool. A node is in at most one pool, as for the
// machine config operator: a custom one, unless the control plane's selects the node as well; else the arbiters' or the
// workers'. A node that several custom pools select is in no pool, see ConflictingPools. Windows nodes are in no pool.
func PoolOf(pools []Pool, node *Node) string {
	in, _ := poolOf(pools, node)
	return in
}

// ConflictingPools returns the custom pools that select the node, if there are several. The machine config
// operator then leaves the node alone, and its pools are updated without it.
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

// poolOf returns the name of the node's pool, and how many custom pools select the node.
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

// poolOrder lists the pools that may select one node; the last one has it. Any other name is a custom pool's.
var poolOrder = []string{poolWorker, poolArbiter, "", PoolMaster}

// orderedName returns the name of the pool in poolOrder.
func (p *Pool) orderedName() string {
	if p.IsCustom() {
		return ""
	}
	return p.Name
}

// IsCustom reports whether the machine config operator takes the pool for a custom one. It does so by name.
func (p *Pool) IsCustom() bool {
	return p.Name != PoolMaster && p.Name != poolWorker && p.Name != poolArbiter
}

// degraded returns the pool's own summary. If it has no message, it gets the messages of the conditions that it sums
// up.
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

// isDegradedCondition reports whether a condition of a pool says that something is degraded.
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
