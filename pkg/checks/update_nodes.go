// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// NotReadyLimit is how long a node may be not ready before this is a warning. A reboot takes several minutes.
const NotReadyLimit = 10 * time.Minute

// Time until other conditions of a node become warnings and a degraded node becomes an error.
const (
	degradedLimit = 10 * time.Minute
	// joiningLimit is how long the machine config operator may take to configure a new node.
	joiningLimit = 5 * time.Minute
	// cordonLimit is how long the machine config operator may take to cordon a node whose drain is requested.
	cordonLimit     = 30 * time.Second
	pressureWarning = time.Minute
)

// findUpdateNodes requires the pools, because they are the scope of the findings.
func findUpdateNodes(f Facts) []Finding {
	if !f.Has(SourceNodes) || !f.Has(SourcePools) {
		return nil
	}
	rollout := f.rollout()
	var found []Finding
	for i := range rollout.pools {
		pool := &rollout.pools[i]
		in := poolScope(pool.Pool.Name)
		first := len(found)
		for j := range pool.Nodes {
			found = f.appendNode(found, &pool.Nodes[j], pool.Pool, in)
		}
		found = f.appendPool(found, pool, in, found[first:])
	}
	conflicts := f.poolConflicts()
	for i := range conflicts {
		conflicts[i].Level = LevelWarning // does not block the update
	}
	found = append(found, conflicts...)
	for _, node := range rollout.others {
		found = f.appendConditions(found, node, poolScope(clusterstate.PoolOf(f.Pools, node)))
	}
	return found
}

// scope is the part of the cluster that the nodes of a pool belong to.
type scope struct {
	scope Scope
	pools []Resource // the pool, except for the control plane pool
}

func poolResource(name string) Resource {
	return Resource{Group: mcfgv1.GroupName, Kind: "MachineConfigPool", Name: name}
}

// poolScope returns the scope of a pool. The name is empty for nodes without a pool.
func poolScope(name string) scope {
	switch {
	case name == "":
		return scope{scope: ScopeWorkerPool}
	case clusterstate.Pool{Name: name}.Role() == clusterstate.RoleControlPlane:
		return controlPlane
	}
	return scope{ScopeWorkerPool, []Resource{poolResource(name)}}
}

// finding returns a finding about objects of the scope.
func (s scope) finding(level Level, kind Type, reason, summary string, resources ...Resource) Finding {
	return Finding{
		Scope: s.scope, Resources: append(slices.Clip(s.pools), resources...), Level: level, Type: kind, Reason: reason, Summary: summary,
	}
}

func nodeResource(name string) Resource { return Resource{Kind: "Node", Name: name} }

func (f Facts) appendNode(found []Finding, n *clusterstate.NodeProgress, pool clusterstate.Pool, in scope) []Finding {
	node := n.Node
	if n.Step != clusterstate.StepNone {
		found = append(found, f.stepOf(n, in))
	}
	if node.Degraded() {
		reason, summary := "NodeDegraded", "the machine config operator cannot update the node"
		if node.State != "Degraded" {
			reason, summary = "NodeUnreconcilable", "the machine config operator cannot reconcile the configuration of the node"
		}
		finding := in.finding(LevelWarning, TypeUpdateStalled, reason, summary, nodeResource(node.Name))
		finding.Description, finding.Since = node.Reason, f.degradedSince(node, pool)
		if (pool.NodeDegraded.IsTrue() || pool.Degraded.IsTrue()) && (finding.Since.IsZero() || f.Now.Sub(finding.Since) >= degradedLimit) {
			finding.Level = LevelError
		}
		if node.Reason == "" {
			finding.Description = "The machine config daemon gives no reason."
		}
		found = append(found, finding)
	}
	found = f.appendConditions(found, node, in)
	if node.DrainNotCordoned() {
		finding := in.finding(LevelWarning, TypeUpdateStalled, "DrainNotCordoned", "nodes that can be scheduled although their drain is requested", nodeResource(node.Name))
		finding.Description = "The machine config operator cordons a node once, before it drains it. New pods can be scheduled to this node."
		finding.MinDuration = cordonLimit
		found = append(found, finding)
	}
	if n.Step == clusterstate.StepDraining {
		found = f.appendHolds(found, node, in)
	}
	return found
}

// degradedSince returns since when a node has been degraded according to its pool, or zero if this is
// unknown.
func (f Facts) degradedSince(node *clusterstate.Node, pool clusterstate.Pool) time.Time {
	degraded := pool.NodeDegraded
	if !degraded.IsTrue() || !clusterstate.IsPlausible(degraded.Since, f.Now) || !strings.Contains(degraded.Message, node.Name) {
		return time.Time{}
	}
	return degraded.Since
}

func (f Facts) stepOf(n *clusterstate.NodeProgress, in scope) Finding {
	node := n.Node
	finding := in.finding(LevelStatus, TypeUnknown, "NodeUpdating", "nodes being updated", nodeResource(node.Name))
	finding.Since = node.CordonedSince
	switch n.Step {
	case clusterstate.StepDraining:
		finding.Reason, finding.Summary = "NodeDraining", "nodes being drained"
		finding.Since = node.Drain.Start(f.NewestUpdate().Start, f.Now)
		if drain := f.Drains[node.Name]; drain.Read {
			finding.Description = fmt.Sprintf("Pods left on the node: %d.", len(drain.Pods))
		}
	case clusterstate.StepRebooting:
		finding.Reason, finding.Summary = "NodeRebooting", "nodes rebooting"
		if !node.Ready {
			finding.Since = node.ReadySince
		}
	default:
	}
	return finding
}

// nodeConditions lists conditions that become warnings if they remain True. If a node stops responding, the
// node controller sets them to Unknown. That is reported separately.
var nodeConditions = []struct {
	name            corev1.NodeConditionType
	reason, summary string
}{
	{corev1.NodeDiskPressure, "NodeDiskPressure", "nodes with too little disk space"},
	{corev1.NodeNetworkUnavailable, "NodeNetworkUnavailable", "nodes without a network"},
}

// appendConditions appends findings about the conditions of a node. A condition without a known time counts
// as having lasted long enough.
func (f Facts) appendConditions(found []Finding, node *clusterstate.Node, in scope) []Finding {
	lasts := func(since time.Time, limit time.Duration) bool {
		return !clusterstate.IsPlausible(since, f.Now) || f.Now.Sub(since) > limit
	}
	if !node.Ready {
		since, condition := node.ReadySince, node.Condition(corev1.NodeReady)
		if condition.Status == "" {
			since = node.Created
		}
		if lasts(since, NotReadyLimit) {
			finding := in.finding(LevelWarning, TypeClusterCapacity, "NodeNotReady", "nodes not ready", nodeResource(node.Name))
			finding.Since, finding.Description = since, describeCondition(condition, "Ready")
			found = append(found, finding)
		}
	}
	for _, c := range nodeConditions {
		condition := node.Condition(c.name)
		if condition.IsTrue() && lasts(condition.Since, pressureWarning) {
			finding := in.finding(LevelWarning, TypeClusterCapacity, c.reason, c.summary, nodeResource(node.Name))
			finding.Since, finding.Description = condition.Since, describeCondition(condition, string(c.name))
			found = append(found, finding)
		}
	}
	return found
}

// appendHolds appends findings about the pods that block a long drain, with the budgets that prevent their
// eviction. If budgets cannot be read, it is unknown what blocks a pod.
func (f Facts) appendHolds(found []Finding, node *clusterstate.Node, in scope) []Finding {
	drain := f.Drains[node.Name]
	if !drain.Read || !f.Has(SourcePDBs) || !f.isLong(drain) {
		return found
	}
	for i := range drain.Pods {
		found = append(found, f.holdFinding(&drain.Pods[i], drain, in))
	}
	return found
}

// isLong reports whether a drain takes long or its start is unknown.
func (f Facts) isLong(drain DrainingNode) bool {
	return !clusterstate.IsPlausible(drain.Start, f.Now) || f.Now.Sub(drain.Start) >= LongDrain
}

func (f Facts) holdFinding(pod *clusterstate.DrainedPod, drain DrainingNode, in scope) Finding {
	hold := pod.Hold(clusterstate.DrainDeadlines{})
	resources := []Resource{{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, nodeResource(drain.Node)}
	finding := in.finding(LevelWarning, TypeUpdateStalled, "PodNotEvicted", "pods that are not evicted yet")
	finding.Since = drain.Start
	switch {
	case hold.Reason == clusterstate.HeldByTermination && pod.KeptByFinalizers && len(pod.Finalizers) > 0:
		finding.Reason, finding.Summary = "PodKeptByFinalizers", "pods that are kept by finalizers"
		finding.Description = "Only their owners may remove the finalizers: " + text.JoinNames(pod.Finalizers)
	case hold.Reason == clusterstate.HeldByTermination:
		finding.Reason, finding.Summary = "PodTerminating", "pods that do not terminate"
		finding.Description = "The grace period of the pod ends at " + text.FormatTime(pod.TerminationDeadline) + "."
	case hold.Reason == clusterstate.HeldByPDB:
		if blocking := f.blockingBudgets(pod); len(blocking) > 0 {
			finding.Reason, finding.Summary = "PodHeldByBudget", "pods that cannot be evicted"
			if len(pod.PDBs) > 1 {
				finding.Reason, finding.Summary = "PodSelectedByBudgets", "pods that several budgets select"
			}
			finding.Description = budgetDescription(blocking, len(pod.PDBs) > 1)
			for i := range blocking {
				resources = slices.Insert(resources, i, pdbResource(blocking[i]))
			}
		}
	}
	finding.Resources = append(finding.Resources, resources...)
	return finding
}

// blockingBudgets returns the budgets that prevent the eviction of a pod: budgets that allow no disruptions
// or, if several budgets select the pod, all of them, because the Eviction API refuses the pod then.
func (f Facts) blockingBudgets(pod *clusterstate.DrainedPod) []clusterstate.PDB {
	var blocking []clusterstate.PDB
	for i := range f.PDBs {
		b := &f.PDBs[i]
		if b.Namespace == pod.Namespace && slices.Contains(pod.PDBs, b.Namespace+"/"+b.Name) && (len(pod.PDBs) > 1 || b.EvictionBlock() != clusterstate.NotBlocked) {
			blocking = append(blocking, *b)
		}
	}
	return blocking
}

func budgetDescription(budgets []clusterstate.PDB, several bool) string {
	b := &budgets[0]
	if several {
		return "Several PodDisruptionBudgets select the pod, so that the API server refuses to evict it."
	}
	switch b.EvictionBlock() {
	case clusterstate.BlockedBySyncError:
		return fmt.Sprintf("PodDisruptionBudget %s/%s cannot be computed: %s", b.Namespace, b.Name, b.SyncError)
	case clusterstate.BlockedUnobserved:
		return fmt.Sprintf("PodDisruptionBudget %s/%s was not observed yet.", b.Namespace, b.Name)
	case clusterstate.BlockedByCount, clusterstate.NotBlocked:
	}
	return fmt.Sprintf("PodDisruptionBudget %s/%s allows %d disruptions: %d of %d pods are healthy, and %d must be.",
		b.Namespace, b.Name, b.Allowed, b.Healthy, b.Expected, b.Desired)
}

// appendPool appends findings about a pool. The findings about its nodes are possible causes.
func (f Facts) appendPool(found []Finding, pool *clusterstate.PoolProgress, in scope, nodes []Finding) []Finding {
	in.pools = []Resource{poolResource(pool.Pool.Name)} // includes the control plane pool
	if degraded := pool.Pool.Degraded; degraded.IsTrue() {
		finding := in.finding(LevelError, TypeUpdateStalled, "PoolDegraded", "machine config pools degraded")
		finding.Since, finding.Description = degraded.Since, describeCondition(degraded, "Degraded")
		for i := range nodes {
			if nodes[i].Level >= LevelError {
				finding.CausedBy = append(finding.CausedBy, nodes[i].UID())
			}
		}
		found = append(found, finding)
	}
	if pool.Pool.Paused && pool.Outdated() {
		release := clusterstate.ReleaseOf(pool.Pool, false, f.Now)
		finding := in.finding(LevelWarning, TypeUpdateStalled, "PoolPaused", "paused pools with outdated nodes")
		finding.Description, finding.Remedy = PausedBy(pool.Pool, release)
		if release.State == clusterstate.ReleaseLater || release.State == clusterstate.ReleaseNow { // it is unpaused in time
			finding.Level, finding.Reason, finding.Summary = LevelInfo, "PoolDelayed", "delayed pools with outdated nodes"
		}
		found = append(found, finding)
	}
	return found
}
