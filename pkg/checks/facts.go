// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Missing explains why a source could not be read.
type Missing struct {
	// Reason is one of the constants below.
	Reason string
	// Message is one line of limited length, such as "you are not allowed to list them".
	Message string
}

// Reasons why a source is missing.
const (
	MissingForbidden     = "Forbidden"     // the API server denies access
	MissingNotFound      = "NotFound"      // an object that every cluster must have does not exist
	MissingNotInstalled  = "NotInstalled"  // the API server does not serve a required kind
	MissingUnavailable   = "Unavailable"   // no valid answer
	MissingNotConfigured = "NotConfigured" // the source is unknown
)

// Facts holds everything known about a cluster at one time. Facts are immutable because they may share memory
// with a cache.
type Facts struct {
	// Now is the time when the facts were read.
	Now time.Time
	// ClusterID is the ID of the cluster, or empty if it is unknown.
	ClusterID string
	Version   clusterstate.Version
	// VersionManagement is spec.versionManagement of the ClusterVersion as decoded from JSON, or nil if it is
	// absent.
	VersionManagement any
	Operators         []clusterstate.ClusterOperator
	Nodes             []clusterstate.Node
	Pools             []clusterstate.Pool
	// Configs maps names to rendered MachineConfigs.
	Configs map[string]clusterstate.Rendered
	// ImageBuilds maps rendered configurations to unfinished builds of OS images. They are read only while a
	// pool has outdated nodes and updates none of them.
	ImageBuilds map[string]clusterstate.ImageBuild
	// MachinePools lists the MachineSets, MachineDeployments, and NodePools.
	MachinePools []MachinePool
	PDBs         []clusterstate.PDB
	// PDBOverlaps lists the pairs of PodDisruptionBudgets that select a common pod. UncomparedPDBs lists the
	// namespaces in which this is unknown. Both are determined for gates and plans only.
	PDBOverlaps    []clusterstate.PDBPair
	UncomparedPDBs []string
	// Drains maps nodes to their drains for the update.
	Drains map[string]DrainingNode
	// BudgetPods maps namespaces to the pods selected by budgets that block a long drain. Namespaces that
	// were not read are missing.
	BudgetPods map[string][]clusterstate.Pod
	// Alerts lists the firing and pending alerts. They are read only during an update or for plans.
	Alerts []clusterstate.Alert
	// Upgrades lists the UpgradeConfigs and UpgradeJobs, sorted by kind, namespace, and name.
	Upgrades []Upgrade
	// Schedules lists the next starts of UpgradeConfigs that create UpgradeJobs, sorted by namespace and
	// name. They are read only while no update is in progress.
	Schedules []Schedule
	// Missing holds the sources that could not be read. Optional kinds that are not installed do not count as
	// missing.
	Missing map[FactSource]Missing
	// Read lists the sources that were read, in order. A source that is neither read nor missing is not
	// installed or not needed now.
	Read []FactSource
	// MachineConfigImage is the machine-config operator image that the release has deployed. It is read only
	// while an update changes nothing but the image, and is empty if unknown.
	MachineConfigImage string

	// Options narrow the checks for one upgrade object. They are zero for an update status.
	Options GateOptions
	// Target is the release of a plan. Plan holds facts that are known only for plans.
	Target string
	Plan   PlanFacts
	// DeletingMachines holds the Machines that are being deleted. See clusterstate.Node.
	DeletingMachines map[string]bool
	// CriticalAlerts lists the critical alerts of a gate. QueriesWithSamples lists the custom queries with
	// results. AlertsDisabled is set if alerts are not queried.
	CriticalAlerts     []clusterstate.Alert
	AlertsDisabled     bool
	QueriesWithSamples []string
	// FailingObjects lists the objects of a gate that fail their conditions.
	FailingObjects []FailingObject

	shared func() rollout // computes the rollouts once; if nil, each use computes them
}

// Has reports whether nothing is missing from the source. A source that is not installed is not missing.
func (f Facts) Has(source FactSource) bool {
	_, missing := f.Missing[source]
	return !missing
}

// Complete reports whether every required source was read.
func (f Facts) Complete() bool {
	return !slices.ContainsFunc(Required(), func(s FactSource) bool { return !f.Has(s) })
}

// MachinePool holds the facts about a MachineSet, MachineDeployment, or NodePool.
type MachinePool struct {
	Resource   Resource
	APIVersion string
	UID        string
	// Deployment names the MachineDeployment that controls a MachineSet. It is empty if there is none.
	Deployment string
	// Version is the desired version of the machines, if the object specifies one.
	Version string
	// Updating is set while machines lack the desired version.
	Updating bool
	// Unknown explains why it is unknown whether the machines have the version. It is empty if this is known.
	Unknown string
	// VersionManagement is spec.versionManagement as decoded from JSON, or nil if it is absent.
	VersionManagement any
}

// DrainingNode describes how the machine config operator drains a node for the update.
type DrainingNode struct {
	Node string
	// Start is the time from which the drain counts, or zero if this is unknown.
	Start time.Time
	// Read is set if the pods were read. The number of drains read at a time is limited. The longest come
	// first.
	Read bool
	// Pods lists the pods left on the node, except pods that a drain ignores.
	Pods []clusterstate.DrainedPod
}

// Informer is one of the built-in informers.
type Informer struct {
	// Name identifies the informer. It starts with "builtin-".
	Name string
	// Doc describes the informer's findings in one sentence.
	Doc string
	// Requires lists the sources that the informer depends on. If any of them is missing, a pass confirms
	// only the insights it finds and resolves none.
	Requires []FactSource
	// OnlyDuringUpdate is set if what the informer requires is read only during an update. Its insights end
	// with the update, unresolved.
	OnlyDuringUpdate bool
}

// Names of the built-in informers.
const (
	InformerControlPlane = "builtin-control-plane"
	InformerNodes        = "builtin-nodes"
	InformerAlerts       = "builtin-alerts"
	InformerUpgrades     = "builtin-upgrades"
)

// Informers returns the informers that report on the update in progress.
func Informers() []Informer {
	return []Informer{
		{
			Name:     InformerControlPlane,
			Doc:      "Reports how the update of the control plane goes, and which ClusterOperators are unavailable or degraded.",
			Requires: []FactSource{SourceClusterVersion, SourceOperators},
		},
		{
			Name:     InformerNodes,
			Doc:      "Reports which nodes are being updated, what holds their drains, and which nodes and pools are not well.",
			Requires: []FactSource{SourceClusterVersion, SourceNodes, SourcePools, SourceConfigs},
		},
		{
			Name:     InformerAlerts,
			Doc:      "Reports alerts that began to fire during the update, and those about PodDisruptionBudgets.",
			Requires: []FactSource{SourceClusterVersion, SourceAlerts}, OnlyDuringUpdate: true,
		},
		{
			Name: InformerUpgrades,
			Doc:  "Reports the current step, the schedule, and the pre-checks of UpgradeConfigs and UpgradeJobs.",
		},
	}
}

// Find returns the findings. It is pure. A missing source yields no findings.
func (i Informer) Find(f Facts) []Finding {
	var found []Finding
	for _, rule := range rulesOf(Update) {
		if rule.Informer == i.Name {
			found = append(found, rule.Find(f, Update)...)
		}
	}
	return found
}
