// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var nodesInformer = Informer{
	Name:     NameNodes,
	Doc:      "Reports which nodes are being updated, what holds their drains, and which nodes and pools are not well.",
	Requires: []Source{SourceClusterVersion, SourceNodes, SourcePools, SourceConfigs},
	Find:     findNodes,
}

// After these times a condition of a node is a warning.
const (
	notReadyWarning = 5 * time.Minute
	pressureWarning = time.Minute
)

// findNodes needs the pools, because they are the scope of the findings.
func findNodes(f Facts) []checks.Finding {
	if !f.Has(SourceNodes) || !f.Has(SourcePools) {
		return nil
	}
	rollout := f.rollout()
	var found []checks.Finding
	for i := range rollout.pools {
		pool := &rollout.pools[i]
		in := poolScope(pool.Pool.Name)
		first := len(found)
		for j := range pool.Nodes {
			found = f.appendNode(found, &pool.Nodes[j], in)
		}
		found = f.appendPool(found, pool, in, found[first:])
	}
	for i := range rollout.others {
		node := &rollout.others[i]
		found = f.appendConditions(found, node, poolScope(clusterstate.PoolOf(f.Pools, *node)))
	}
	return found
}

// scope is the part of the cluster to which the nodes of a pool belong.
type scope struct {
	scope checks.Scope
	pools []checks.Resource // the pool, unless it is that of the control plane
}

func poolResource(name string) checks.Resource {
	return checks.Resource{Group: mcfgv1.GroupName, Kind: "MachineConfigPool", Name: name}
}

// poolScope returns the scope of a pool; an empty name means none.
func poolScope(name string) scope {
	switch name {
	case clusterstate.PoolMaster:
		return scope{scope: checks.ScopeControlPlane}
	case "":
		return scope{scope: checks.ScopeWorkerPool}
	}
	return scope{checks.ScopeWorkerPool, []checks.Resource{poolResource(name)}}
}

// finding returns a finding about objects of the scope.
func (s scope) finding(level checks.Level, kind checks.Type, reason, summary string, resources ...checks.Resource) checks.Finding {
	return checks.Finding{
		Scope: s.scope, Resources: append(slices.Clip(s.pools), resources...), Level: level, Type: kind, Reason: reason, Summary: summary,
	}
}

func nodeResource(name string) checks.Resource { return checks.Resource{Kind: "Node", Name: name} }

// appendNode appends the findings about a node of a pool.
func (f Facts) appendNode(found []checks.Finding, n *NodeRollout, in scope) []checks.Finding {
	node := &n.Node
	if n.Step != checks.StepNone {
		found = append(found, f.nodeProgress(n, in))
	}
	if node.Degraded() {
		reason, summary := "NodeDegraded", "the machine config operator cannot update the node"
		if node.State != "Degraded" {
			reason, summary = "NodeUnreconcilable", "the machine config operator cannot reconcile the configuration of the node"
		}
		finding := in.finding(checks.LevelError, checks.TypeUpdateStalled, reason, summary, nodeResource(node.Name))
		finding.Description = node.Reason
		if node.Reason == "" {
			finding.Description = "The machine config daemon gives no reason."
		}
		found = append(found, finding)
	}
	found = f.appendConditions(found, node, in)
	if n.Step == checks.StepDraining {
		found = f.appendHolds(found, node, in)
	}
	return found
}

// nodeProgress reports what the machine config operator does with a node.
func (f Facts) nodeProgress(n *NodeRollout, in scope) checks.Finding {
	node := &n.Node
	finding := in.finding(checks.LevelStatus, checks.TypeUnknown, "NodeUpdating", "nodes being updated", nodeResource(node.Name))
	finding.Since = node.CordonedSince
	switch n.Step {
	case checks.StepDraining:
		finding.Reason, finding.Summary = "NodeDraining", "nodes being drained"
		finding.Since = node.Drain.Start(f.NewestUpdate().Start, f.Now)
		if drain := f.Drains[node.Name]; drain.Read {
			finding.Description = fmt.Sprintf("Pods left on the node: %d.", len(drain.Pods))
		}
	case checks.StepRebooting:
		finding.Reason, finding.Summary = "NodeRebooting", "nodes rebooting"
		if !node.Ready {
			finding.Since = node.ReadySince
		}
	default:
	}
	return finding
}

// nodeCondition is a condition of a node that is a warning if it lasts.
type nodeCondition struct {
	name            corev1.NodeConditionType
	reason, summary string
}

// nodeConditions are reported while they are True. The node controller sets them to Unknown if a node
// does not answer, which is reported as such.
var nodeConditions = []nodeCondition{
	{corev1.NodeDiskPressure, "NodeDiskPressure", "nodes with too little disk space"},
	{corev1.NodeNetworkUnavailable, "NodeNetworkUnavailable", "nodes without a network"},
}

// appendConditions appends the findings about the conditions of a node. One whose time is unknown
// counts as if it had lasted.
func (f Facts) appendConditions(found []checks.Finding, node *clusterstate.Node, in scope) []checks.Finding {
	lasts := func(since time.Time, limit time.Duration) bool {
		return !clusterstate.IsPlausible(since, f.Now) || f.Now.Sub(since) > limit
	}
	if !node.Ready {
		since, condition := node.ReadySince, node.Condition(corev1.NodeReady)
		if condition.Status == "" {
			since = node.Created
		}
		if lasts(since, notReadyWarning) {
			finding := in.finding(checks.LevelWarning, checks.TypeClusterCapacity, "NodeNotReady", "nodes not ready", nodeResource(node.Name))
			finding.Since, finding.Description = since, describeCondition(condition, "Ready")
			found = append(found, finding)
		}
	}
	for _, c := range nodeConditions {
		condition := node.Condition(c.name)
		if condition.IsTrue() && lasts(condition.Since, pressureWarning) {
			finding := in.finding(checks.LevelWarning, checks.TypeClusterCapacity, c.reason, c.summary, nodeResource(node.Name))
			finding.Since, finding.Description = condition.Since, describeCondition(condition, string(c.name))
			found = append(found, finding)
		}
	}
	return found
}

// appendHolds appends what holds a drain that takes long: each pod, with the budgets that keep it from
// being evicted. Without the budgets, it is unknown what holds a pod.
func (f Facts) appendHolds(found []checks.Finding, node *clusterstate.Node, in scope) []checks.Finding {
	drain := f.Drains[node.Name]
	if !drain.Read || !f.Has(SourcePDBs) || !f.isLong(drain) {
		return found
	}
	for i := range drain.Pods {
		found = append(found, f.holdFinding(&drain.Pods[i], drain, in))
	}
	return found
}

// isLong reports whether a drain takes long; one whose start is unknown does.
func (f Facts) isLong(drain Drain) bool {
	return !clusterstate.IsPlausible(drain.Start, f.Now) || f.Now.Sub(drain.Start) >= checks.LongDrain
}

// holdFinding returns what holds a pod on a node that is being drained.
func (f Facts) holdFinding(pod *checks.DrainedPod, drain Drain, in scope) checks.Finding {
	hold := pod.Hold(checks.DrainDeadlines{})
	resources := []checks.Resource{{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, nodeResource(drain.Node)}
	finding := checks.Finding{Reason: "PodNotEvicted", Summary: "pods that are not evicted yet"}
	switch {
	case hold.Reason == checks.HeldByTermination && pod.KeptByFinalizers && len(pod.Finalizers) > 0:
		finding.Reason, finding.Summary = "PodKeptByFinalizers", "pods that are kept by finalizers"
		finding.Description = "Only their owners may remove the finalizers: " + text.JoinNames(pod.Finalizers)
	case hold.Reason == checks.HeldByTermination:
		finding.Reason, finding.Summary = "PodTerminating", "pods that do not terminate"
		finding.Description = "The grace period of the pod ends at " + pod.TerminationDeadline.UTC().Format(time.RFC3339) + "."
	case hold.Reason == checks.HeldByPDB:
		if blocking := f.blockingBudgets(pod); len(blocking) > 0 {
			finding.Reason, finding.Summary = "PodHeldByBudget", "pods that cannot be evicted"
			if len(pod.PDBs) > 1 {
				finding.Reason, finding.Summary = "PodSelectedByBudgets", "pods that several budgets select"
			}
			finding.Description = budgetDescription(blocking, len(pod.PDBs) > 1)
			resources = append(budgetResources(blocking), resources...)
		}
	}
	made := in.finding(checks.LevelWarning, checks.TypeUpdateStalled, finding.Reason, finding.Summary, resources...)
	made.Since, made.Description = drain.Start, finding.Description
	return made
}

// blockingBudgets returns the budgets that keep a pod from being evicted: those that allow no
// disruption, or all of them if there are several, because the Eviction API then refuses.
func (f Facts) blockingBudgets(pod *checks.DrainedPod) []clusterstate.PDB {
	var blocking []clusterstate.PDB
	for i := range f.PDBs {
		b := &f.PDBs[i]
		if b.Namespace == pod.Namespace && slices.Contains(pod.PDBs, b.Namespace+"/"+b.Name) && (len(pod.PDBs) > 1 || b.BlocksEviction || !b.Observed) {
			blocking = append(blocking, *b)
		}
	}
	return blocking
}

func budgetResources(budgets []clusterstate.PDB) []checks.Resource {
	var resources []checks.Resource
	for i := range budgets {
		resources = append(resources, checks.Resource{Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: budgets[i].Namespace, Name: budgets[i].Name})
	}
	return resources
}

func budgetDescription(budgets []clusterstate.PDB, several bool) string {
	b := &budgets[0]
	switch {
	case several:
		return "Several PodDisruptionBudgets select the pod, so that the API server refuses to evict it."
	case b.SyncError != "":
		return fmt.Sprintf("PodDisruptionBudget %s/%s cannot be computed: %s", b.Namespace, b.Name, b.SyncError)
	case !b.Observed:
		return fmt.Sprintf("PodDisruptionBudget %s/%s was not observed yet.", b.Namespace, b.Name)
	}
	return fmt.Sprintf("PodDisruptionBudget %s/%s allows %d disruptions: %d of %d pods are healthy, and %d must be.",
		b.Namespace, b.Name, b.Allowed, b.Healthy, b.Expected, b.Desired)
}

// appendPool appends the findings about a pool, given those about its nodes.
func (f Facts) appendPool(found []checks.Finding, pool *PoolRollout, in scope, nodes []checks.Finding) []checks.Finding {
	about := func(level checks.Level, reason, summary string) checks.Finding {
		if in.scope == checks.ScopeControlPlane {
			return in.finding(level, checks.TypeUpdateStalled, reason, summary, poolResource(pool.Pool.Name))
		}
		return in.finding(level, checks.TypeUpdateStalled, reason, summary)
	}
	if degraded := pool.Pool.Degraded; degraded.IsTrue() {
		finding := about(checks.LevelError, "PoolDegraded", "machine config pools degraded")
		finding.Since, finding.Description = degraded.Since, describeCondition(degraded, "Degraded")
		for i := range nodes {
			if nodes[i].Level >= checks.LevelError {
				finding.CausedBy = append(finding.CausedBy, nodes[i].UID())
			}
		}
		found = append(found, finding)
	}
	if pool.Pool.Paused && pool.Outdated() {
		release := checks.ReleaseOf(pool.Pool, false, f.Now)
		finding := about(checks.LevelWarning, "PoolPaused", "paused pools with outdated nodes")
		finding.Description, finding.Remedy = checks.PausedBy(pool.Pool, release)
		if release.State == checks.ReleaseLater || release.State == checks.ReleaseNow { // it is unpaused in time
			finding.Level, finding.Reason, finding.Summary = checks.LevelInfo, "PoolDelayed", "delayed pools with outdated nodes"
		}
		found = append(found, finding)
	}
	return found
}
