// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// unassigned is the name of the section for nodes that belong to no pool.
	unassigned = "unassigned"
	// poolKind is the kind of pool that the machine config operator updates.
	poolKind = "MachineConfigPool"
	// maxPools limits the number of pools in a status.
	maxPools = 32
)

// pool is the section of one pool.
type pool struct {
	status updatev1beta1.WorkerPoolStatus
	// nodes is the set of the names of its nodes.
	nodes map[string]bool
}

func (p *pool) ref() updatev1beta1.ResourceReference {
	return updatev1beta1.ResourceReference{APIVersion: p.status.APIVersion, Kind: p.status.Kind, Namespace: p.status.Namespace, Name: p.status.Name}
}

// addPools adds the sections of the pools, without insights: the MachineConfigPools except the control
// plane's, the other relevant pools, and the nodes that belong to no pool.
func (c *computation) addPools() {
	for i := range c.Facts.Pools {
		if of := &c.Facts.Pools[i]; of.Role() != clusterstate.RoleControlPlane {
			c.addConfigPool(of)
		}
	}
	if !c.Facts.Has(checks.SourcePools) {
		c.keepPools()
	}
	for i := range c.Facts.MachinePools {
		if of := &c.Facts.MachinePools[i]; c.matters(of) {
			c.addMachinePool(of)
		}
	}
	c.addUnassigned()
}

func (c *computation) add(p *pool, observed observation, subject pause.Subject) {
	cluster := c.controlPlaneSubject()
	cluster.Pool = nil // pauses of the control plane's own node pool do not apply here
	paused := pause.Of(subject, &cluster, c.now)
	if observed.pending && paused.State == pause.PausedUntil {
		c.resumes[p.ref()] = paused.Until
	}
	for _, condition := range conditions(observed, paused, poolWording(observed)) {
		c.setCondition(&p.status.Section, c.previousConditions(p.ref()), condition)
	}
	c.pools = append(c.pools, p)
}

func (c *computation) previousConditions(ref updatev1beta1.ResourceReference) []metav1.Condition {
	for i := range c.Previous.WorkerPools {
		before := &c.Previous.WorkerPools[i]
		if before.Kind == ref.Kind && before.Namespace == ref.Namespace && before.Name == ref.Name && insight.Group(before.APIVersion) == insight.Group(ref.APIVersion) {
			return before.Conditions
		}
	}
	return nil
}

func (c *computation) addConfigPool(of *clusterstate.Pool) {
	p := &pool{status: updatev1beta1.WorkerPoolStatus{APIVersion: mcfgv1.GroupVersion.String(), Kind: poolKind, Name: of.Name, UID: string(of.UID)}, nodes: map[string]bool{}}
	observed := observation{unknown: missing(c.Facts, checks.SourceClusterVersion, checks.SourceNodes)}
	if rollout, known := c.rollouts[of.Name]; known && observed.unknown == "" {
		observed = observe(rollout.Nodes)
		if missing := c.Facts.MissingNodes(rollout); missing != "" && !observed.pending {
			observed.unknown = poolKind + " " + of.Name + ": " + missing
		}
		p.status.Progress = progressOf(rollout.Nodes)
		for _, n := range rollout.Nodes {
			p.nodes[n.Node.Name] = true
		}
	}
	c.add(p, observed, pause.Subject{Kind: poolKind, Pool: of, PoolUpToDate: observed.unknown == "" && !observed.pending})
}

// observe observes whether an update of the nodes is pending.
func observe(nodes []clusterstate.NodeProgress) observation {
	var o observation
	for i := range nodes {
		if !nodes[i].Updated() {
			o.pending = true
			o.outdated = append(o.outdated, nodes[i].Node.Name)
		}
	}
	return o
}

func progressOf(nodes []clusterstate.NodeProgress) *updatev1beta1.Progress {
	var counts clusterstate.NodeCounts
	for i := range nodes {
		counts.Add(&nodes[i])
	}
	return &updatev1beta1.Progress{
		Total: int32(len(nodes)), Updated: int32(counts.Updated), Updating: int32(counts.Updating), Pending: int32(counts.Pending),
		Unavailable: int32(counts.Unavailable), Degraded: int32(counts.Degraded),
	}
}

// keepPools copies the MachineConfigPool sections of the previous status, for use when the pools cannot be
// read.
func (c *computation) keepPools() {
	for i := range c.Previous.WorkerPools {
		before := &c.Previous.WorkerPools[i]
		if before.Kind != poolKind {
			continue
		}
		p := &pool{status: updatev1beta1.WorkerPoolStatus{APIVersion: before.APIVersion, Kind: before.Kind, Name: before.Name, UID: before.UID}}
		c.add(p, observation{unknown: missing(c.Facts, checks.SourcePools)}, pause.Subject{Kind: poolKind})
	}
}

// matters reports whether a MachineSet, MachineDeployment, or NodePool gets a section. It does if it has
// spec.versionManagement, an insight names it, or nothing else updates its nodes. A MachineDeployment covers
// the MachineSets that it controls.
func (c *computation) matters(of *checks.MachinePool) bool {
	if of.VersionManagement != nil || c.isNamed(insight.Reference(of.Resource)) {
		return true
	}
	return len(c.Facts.Pools) == 0 && c.Facts.Has(checks.SourcePools) && of.Deployment == ""
}

func (c *computation) isNamed(ref updatev1beta1.ResourceReference) bool {
	if c.named == nil {
		c.named = map[updatev1beta1.ResourceReference]bool{}
		for _, of := range c.Insights.Insights() {
			for i := range of.Insights {
				for _, r := range of.Insights[i].Scope.WorkerPool {
					c.named[r] = true
				}
			}
		}
	}
	for named := range c.named {
		if sameObject(named, ref) {
			return true
		}
	}
	return false
}

// sameObject reports whether an insight's reference names an object. The reference may omit the group and the
// namespace.
func sameObject(named, object updatev1beta1.ResourceReference) bool {
	return named.Kind == object.Kind && named.Name == object.Name &&
		(named.Namespace == "" || named.Namespace == object.Namespace) &&
		(named.APIVersion == "" || insight.Group(named.APIVersion) == insight.Group(object.APIVersion))
}

func (c *computation) addMachinePool(of *checks.MachinePool) {
	p := &pool{
		status: updatev1beta1.WorkerPoolStatus{
			APIVersion: of.APIVersion, Kind: of.Resource.Kind, Namespace: of.Resource.Namespace, Name: of.Resource.Name, UID: of.UID,
		},
		nodes: map[string]bool{},
	}
	subject := pause.Subject{Kind: of.Resource.Kind, VersionManagement: of.VersionManagement}
	observed := observation{unknown: missing(c.Facts, checks.SourceClusterVersion, checks.SourceNodes, checks.SourcePools)}
	if observed.unknown == "" {
		nodes := c.nodesOf(of)
		subject.Pool = c.pausingPool(nodes)
		observed = c.observeMachinePool(of, nodes)
		if len(nodes) > 0 {
			p.status.Progress = progressOf(nodes)
		}
		for i := range nodes {
			p.nodes[nodes[i].Node.Name] = true
		}
	}
	c.add(p, observed, subject)
}

// pausingPool returns the first MachineConfigPool that pauses the update of the nodes. It returns nil if any
// outdated node belongs to a pool that is not paused.
func (c *computation) pausingPool(nodes []clusterstate.NodeProgress) *clusterstate.Pool {
	var first *clusterstate.Pool
	for i := range nodes {
		if nodes[i].Updated() {
			continue
		}
		of := c.rollouts[clusterstate.PoolOf(c.Facts.Pools, nodes[i].Node)].Pool
		if !of.Paused {
			return nil
		}
		if first == nil {
			first = &of
		}
	}
	return first
}

// observeMachinePool observes whether an update of a pool is pending. If the machine config operator updates
// its nodes, they decide. Otherwise the version in the pool and the versions of its machines decide. The
// nodes of a Cluster API pool are unknown, and its version may be a Kubernetes version.
func (c *computation) observeMachinePool(of *checks.MachinePool, nodes []clusterstate.NodeProgress) observation {
	version, newest := strings.TrimPrefix(of.Version, "v"), c.Facts.NewestUpdate().Version
	unknown := func(why string) observation {
		return observation{unknown: fmt.Sprintf("%s %s: %s", of.Resource.Kind, of.Resource, why)}
	}
	switch {
	case len(nodes) > 0:
		return observe(nodes)
	case len(c.Facts.Pools) > 0 && insight.Group(of.APIVersion) == machineGroup:
		return observation{message: "The pool has no nodes."}
	case len(c.Facts.Pools) > 0 && insight.Group(of.APIVersion) == clusterGroup:
		return observation{message: "MachineConfigPools update the nodes of the pool. Their sections show the update."}
	case of.Version == "":
		return unknown("the release of its nodes is unknown")
	case newest == "":
		return observation{unknown: "ClusterVersion: its history names no release"}
	case major(version) != major(newest):
		return unknown("its version " + text.Excerpt(of.Version) + " is not a release version")
	case version != newest || of.Updating:
		return observation{pending: true}
	case of.Unknown != "":
		return unknown(of.Unknown)
	}
	return observation{}
}

// major returns the first component of a version.
func major(version string) string {
	number, _, _ := strings.Cut(version, ".")
	return number
}

const (
	// machineGroup is the API group of the Machines that node annotations refer to.
	machineGroup = "machine.openshift.io"
	// clusterGroup is the API group of the Cluster API.
	clusterGroup = "cluster.x-k8s.io"
)

// nodesOf returns the nodes that the machine config operator updates and whose Machines belong to a
// MachineSet. The name of such a Machine is the name of the MachineSet followed by a suffix.
func (c *computation) nodesOf(of *checks.MachinePool) []clusterstate.NodeProgress {
	if insight.Group(of.APIVersion) != machineGroup {
		return nil
	}
	var nodes []clusterstate.NodeProgress
	for _, name := range slices.Sorted(maps.Keys(c.rollouts)) {
		for _, n := range c.rollouts[name].Nodes {
			suffix, found := strings.CutPrefix(n.Node.Machine, of.Resource.String()+"-")
			if found && suffix != "" && !strings.Contains(suffix, "-") {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// addUnassigned adds a section for the nodes that belong to no pool. Nothing updates them to the release, so
// the section never has a pending update.
func (c *computation) addUnassigned() {
	if !c.Facts.Has(checks.SourceNodes) || !c.Facts.Has(checks.SourcePools) || len(c.Facts.Pools) == 0 && len(c.pools) > 0 {
		return
	}
	assigned := map[string]bool{}
	for _, p := range c.pools {
		maps.Copy(assigned, p.nodes)
	}
	p := &pool{status: updatev1beta1.WorkerPoolStatus{Name: unassigned}, nodes: map[string]bool{}}
	for i := range c.Facts.Nodes {
		node := &c.Facts.Nodes[i]
		if !assigned[node.Name] && clusterstate.PoolOf(c.Facts.Pools, node) == "" {
			p.nodes[node.Name] = true
		}
	}
	if len(p.nodes) == 0 {
		return
	}
	names := slices.Collect(maps.Keys(p.nodes))
	c.add(p, observation{message: "Nodes in no pool (" + text.JoinNames(names) + ") are not updated with the release."}, pause.Subject{Kind: "Node"})
}

// boundPools drops pools beyond the limit and returns their number. Pools with a pending or unknown update
// are kept first because the pools in the status determine whether an update is in progress. Next are the
// pools with the most severe insights.
func (c *computation) boundPools() int {
	rank := func(p *pool) int {
		rank := 0
		for _, of := range p.status.UpdateInformers {
			rank = min(rank, -of.Insights[0].Impact.Level.Rank()) // sorted by severity
		}
		if p.status.Conditions[0].Status != metav1.ConditionFalse {
			rank -= maxLevels
		}
		return rank
	}
	dropped := max(len(c.pools)-maxPools, 0)
	if dropped > 0 {
		kept := slices.SortedStableFunc(slices.Values(c.pools), func(a, b *pool) int { return cmp.Compare(rank(a), rank(b)) })[:maxPools]
		c.pools = slices.DeleteFunc(c.pools, func(p *pool) bool { return !slices.Contains(kept, p) })
	}
	return dropped
}
