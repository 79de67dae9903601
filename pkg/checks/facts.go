// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Missing is why a source could not be read.
type Missing struct {
	// Reason is one of the constants below.
	Reason string
	// Message is one bounded line, such as "you are not allowed to list them".
	Message string
}

// The reasons for which a source is missing.
const (
	MissingForbidden     = "Forbidden"     // the API server refuses the read
	MissingNotFound      = "NotFound"      // the object that every cluster has does not exist
	MissingNotInstalled  = "NotInstalled"  // the API server does not serve a required kind
	MissingUnavailable   = "Unavailable"   // no answer, or no valid one
	MissingNotConfigured = "NotConfigured" // the source is unknown
)

// Facts hold what is known about a cluster at one time. They are never changed: facts that come from a cache share
// memory with it.
type Facts struct {
	// Now is when the facts were read.
	Now time.Time
	// ClusterID is the ID of the cluster; empty if unknown.
	ClusterID string
	Version   clusterstate.Version
	// VersionManagement is spec.versionManagement of the ClusterVersion, as it was decoded from JSON;
	// nil if it is absent.
	VersionManagement any
	Operators         []clusterstate.ClusterOperator
	Nodes             []clusterstate.Node
	Pools             []clusterstate.Pool
	// Configs are the rendered MachineConfigs, by name.
	Configs map[string]clusterstate.Rendered
	// ImageBuilds are the builds of OS images that have not ended, by rendered configuration. They are read
	// while a pool has outdated nodes and updates none of them.
	ImageBuilds map[string]clusterstate.ImageBuild
	// MachinePools are the MachineSets, MachineDeployments, and NodePools.
	MachinePools []MachinePool
	PDBs         []clusterstate.PDB
	// PDBOverlaps are the pairs of budgets that select a common pod, and UncomparedPDBs the namespaces
	// in which this is unknown. They are determined in gates and for plans.
	PDBOverlaps    []clusterstate.PDBPair
	UncomparedPDBs []string
	// Drains are the drains of nodes for the update, by node.
	Drains map[string]Drain
	// BudgetPods are the pods, by namespace, that are selected by budgets that hold a long drain. A
	// namespace that was not read has no entry.
	BudgetPods map[string][]clusterstate.Pod
	// Alerts are those that fire or are pending. They are read only while an update is in progress,
	// or for plans.
	Alerts []clusterstate.Alert
	// Upgrades are the UpgradeConfigs and UpgradeJobs, sorted by kind, namespace, and name.
	Upgrades []Upgrade
	// Schedules are the next starts of the UpgradeConfigs that create UpgradeJobs, sorted by namespace
	// and name. They are read only while no update is in progress.
	Schedules []Schedule
	// Missing are the sources that could not be read. An optional kind that is not installed is not
	// missing.
	Missing map[Source]Missing
	// Read are the sources that were read, in the order of reading. A source that is neither read
	// nor missing is not installed, or is not needed now.
	Read []Source
	// MachineConfigImage is the image of the operator machine-config that the release has deployed. It
	// is read while an update changes only the image; empty if unknown.
	MachineConfigImage string

	// Options narrow what counts, for one upgrade object. They are zero for an update status.
	Options Options
	// Target is the release of a plan, and Plan what is known only for plans.
	Target string
	Plan   PlanFacts
	// DeletingMachines are the Machines that are being deleted, see clusterstate.Node.
	DeletingMachines map[string]bool
	// CriticalAlerts are the critical alerts of a gate, and QueriesWithSamples the custom queries with a result.
	// AlertsDisabled reports that there is no source of alerts.
	CriticalAlerts     []clusterstate.Alert
	AlertsDisabled     bool
	QueriesWithSamples []string
	// FailingObjects are the objects of a gate that do not satisfy their conditions.
	FailingObjects []FailingObject

	shared func() rollout // computes the rollouts once; nil means they are computed each time
}

// Has reports whether nothing of the source is missing. It has also what is not installed.
func (f Facts) Has(source Source) bool {
	_, missing := f.Missing[source]
	return !missing
}

// Complete reports whether every required source was read.
func (f Facts) Complete() bool {
	return !slices.ContainsFunc(Required(), func(s Source) bool { return !f.Has(s) })
}

// MachinePool holds the facts of a MachineSet, a MachineDeployment, or a NodePool.
type MachinePool struct {
	Resource   Resource
	APIVersion string
	UID        string
	// Deployment is the name of the MachineDeployment that controls a MachineSet; empty means none.
	Deployment string
	// Version is the version that the machines are to have, as far as the object names it.
	Version string
	// Updating reports that not all machines have the version yet.
	Updating bool
	// Unknown is why it is not known whether they have; empty if it is.
	Unknown string
	// VersionManagement is spec.versionManagement, as it was decoded from JSON; nil if it is absent.
	VersionManagement any
}

// Drain is the drain of a node that the machine config operator is draining for the update.
type Drain struct {
	Node string
	// Start is when the drain began to count; zero if unknown.
	Start time.Time
	// Read reports that the pods were read. Only so many drains are read at a time, the longest first.
	Read bool
	// Pods are those that are still on the node, except those that a drain ignores.
	Pods []clusterstate.DrainedPod
}

// Informer is a built-in informer.
type Informer struct {
	// Name identifies the informer. It starts with "builtin-".
	Name string
	// Doc is one sentence about what the informer finds.
	Doc string
	// Requires lists the sources that the informer cannot do without. Without any of them, its findings
	// confirm and resolve nothing but themselves.
	Requires []Source
}

// The names of the built-in informers.
const (
	InformerControlPlane = "builtin-control-plane"
	InformerNodes        = "builtin-nodes"
	InformerAlerts       = "builtin-alerts"
	InformerUpgrades     = "builtin-upgrades"
)

// Informers returns the informers about the update that is in progress.
func Informers() []Informer {
	return []Informer{
		{
			Name:     InformerControlPlane,
			Doc:      "Reports how the update of the control plane goes, and which ClusterOperators are unavailable or degraded.",
			Requires: []Source{SourceClusterVersion, SourceOperators},
		},
		{
			Name:     InformerNodes,
			Doc:      "Reports which nodes are being updated, what holds their drains, and which nodes and pools are not well.",
			Requires: []Source{SourceClusterVersion, SourceNodes, SourcePools, SourceConfigs},
		},
		{
			Name:     InformerAlerts,
			Doc:      "Reports alerts that began to fire during the update, and those about PodDisruptionBudgets.",
			Requires: []Source{SourceClusterVersion, SourceAlerts},
		},
		{
			Name: InformerUpgrades,
			Doc:  "Reports the current step, the schedule, and the pre-checks of UpgradeConfigs and UpgradeJobs.",
		},
	}
}

// Find returns the findings. It is pure, and a source that is missing yields no finding.
func (i Informer) Find(f Facts) []Finding {
	var found []Finding
	for _, rule := range rulesOf(Update) {
		if rule.Informer == i.Name {
			found = append(found, rule.Find(f, Update)...)
		}
	}
	return found
}
