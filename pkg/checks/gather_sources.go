// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// FactSource names a source of facts, as used in messages.
type FactSource string

// Sources of facts.
const (
	SourceClusterVersion     FactSource = "ClusterVersion"
	SourceOperators          FactSource = "operators"
	SourceNodes              FactSource = "nodes"
	SourcePools              FactSource = "pools"
	SourceConfigs            FactSource = "machine configs"
	SourceImageBuilds        FactSource = "builds of OS images"
	SourcePDBs               FactSource = "disruption budgets"
	SourcePods               FactSource = "pods"
	SourceAlerts             FactSource = "alerts"
	SourceUpgradeConfigs     FactSource = "UpgradeConfigs"
	SourceUpgradeJobs        FactSource = "UpgradeJobs"
	SourceSchedules          FactSource = "schedules of upgrades"
	SourceMachineSets        FactSource = "MachineSets"
	SourceClusterMachineSets FactSource = "MachineSets of Cluster API"
	SourceMachineDeployments FactSource = "MachineDeployments"
	SourceNodePools          FactSource = "NodePools"

	// SourceMachines stands for the Machines that are being deleted. They are read if a node is cordoned.
	SourceMachines FactSource = "machines"
	// SourcePDBOverlaps stands for the pods selected by budgets. They are read if selectors are inconclusive.
	SourcePDBOverlaps    FactSource = "overlaps of disruption budgets"
	SourceCriticalAlerts FactSource = "critical alerts"
	SourceQueries        FactSource = "custom queries"
	SourceObjects        FactSource = "objects with conditions"

	SourceAPIRequests       FactSource = "API requests"
	SourceAdminGates        FactSource = "admin gates"
	SourceEtcd              FactSource = "etcd"
	SourceOptionalOperators FactSource = "optional operators"
	SourceLock              FactSource = "upgrade lock"
	SourcePodRequests       FactSource = "requests of pods"
)

// source describes how to read a source and what depends on it.
type source struct {
	// required is set if clusters cannot be judged without the source.
	required bool
	// cached is the kind that gates read from the cache, or nil.
	cached client.Object
	// kind is the kind of object that findings in the phases refer to.
	kind   string
	phases RulePhase
	read   func(context.Context, *gathering) error
}

// sources contains all sources except pods, which are read per drain.
var sources = map[FactSource]source{
	SourceClusterVersion: {required: true, cached: &configv1.ClusterVersion{}, read: readVersion},
	SourceOperators: {
		required: true, cached: &configv1.ClusterOperator{}, kind: "ClusterOperator", phases: Plan,
		read: list(clusterstate.ListClusterOperators, func(f *Facts) *[]clusterstate.ClusterOperator { return &f.Operators }),
	},
	SourceNodes: {
		required: true, cached: &corev1.Node{}, kind: "Node", phases: Plan,
		read: list(clusterstate.ListNodes, func(f *Facts) *[]clusterstate.Node { return &f.Nodes }),
	},
	SourcePools:   {required: true, cached: &mcfgv1.MachineConfigPool{}, kind: "MachineConfigPool", phases: Plan, read: readPools},
	SourceConfigs: {read: list(clusterstate.ListRenderedConfigs, func(f *Facts) *map[string]clusterstate.Rendered { return &f.Configs })},
	SourceImageBuilds: {
		read: list(clusterstate.ListImageBuilds, func(f *Facts) *map[string]clusterstate.ImageBuild { return &f.ImageBuilds }),
	},
	SourcePDBs:   {cached: &policyv1.PodDisruptionBudget{}, kind: "PodDisruptionBudget", phases: Plan | Update, read: readPDBs},
	SourcePods:   {kind: "Pod", phases: Update},
	SourceAlerts: {kind: "Alert", phases: Plan, read: readAlerts},
	SourceUpgradeConfigs: {kind: "UpgradeConfig", phases: Update, read: each(&upgradev1alpha1.UpgradeConfigList{}, func(f *Facts, config *upgradev1alpha1.UpgradeConfig) {
		f.Upgrades = append(f.Upgrades, upgradeOfConfig(config))
	})},
	SourceUpgradeJobs: {kind: "UpgradeJob", phases: Update, read: each(&maintenancev1beta1.UpgradeJobList{}, func(f *Facts, job *maintenancev1beta1.UpgradeJob) {
		f.Upgrades = append(f.Upgrades, upgradeOfJob(job))
	})},
	SourceSchedules:          {read: each(&maintenancev1beta1.UpgradeConfigList{}, (*Facts).addSchedule)},
	SourceMachineSets:        {read: machineSets.read},
	SourceClusterMachineSets: {read: clusterMachineSets.read},
	SourceMachineDeployments: {read: machineDeployments.read},
	SourceNodePools:          {read: nodePools.read},

	SourceMachines:       {read: readMachines},
	SourcePDBOverlaps:    {read: readOverlaps},
	SourceCriticalAlerts: {read: readCriticalAlerts},
	SourceQueries:        {read: readQueries},
	SourceObjects:        {read: readObjects},

	SourceAPIRequests: {kind: "APIRequestCount", phases: Plan, read: listLive(clusterstate.ListDeprecatedAPIs, func(p *PlanFacts) *[]clusterstate.DeprecatedAPI { return &p.APIs })},
	SourceAdminGates:  {kind: "ConfigMap", phases: Plan, read: listLive(clusterstate.ListAdminGates, func(p *PlanFacts) *[]clusterstate.AdminGate { return &p.Gates })},
	SourceEtcd:        {kind: "Etcd", phases: Plan, read: listLive(clusterstate.ListEtcdConditions, func(p *PlanFacts) *[]clusterstate.EtcdCondition { return &p.Etcd })},
	SourceOptionalOperators: {
		kind: "ClusterServiceVersion", phases: Plan,
		read: listLive(clusterstate.ListClusterServiceVersions, func(p *PlanFacts) *[]clusterstate.ClusterServiceVersion { return &p.OptionalOperators }),
	},
	SourceLock:        {kind: "Lease", phases: Plan, read: readLock},
	SourcePodRequests: {read: readLoads},
}

// list reads facts through Reader.
func list[T any](read func(context.Context, client.Reader) (T, error), into func(*Facts) *T) func(context.Context, *gathering) error {
	return func(ctx context.Context, g *gathering) (err error) {
		*into(&g.facts), err = read(ctx, g.Reader)
		return err
	}
}

// listLive reads facts of plans from the API server.
func listLive[T any](read func(context.Context, client.Reader) (T, error), into func(*PlanFacts) *T) func(context.Context, *gathering) error {
	return func(ctx context.Context, g *gathering) (err error) {
		*into(&g.facts.Plan), err = read(ctx, g.Live)
		return err
	}
}

func each[O runtime.Object](of client.ObjectList, add func(*Facts, O)) func(context.Context, *gathering) error {
	return func(ctx context.Context, g *gathering) error {
		return clusterstate.EachItem(ctx, g.Reader, of, 0, func(o O) error {
			add(&g.facts, o)
			return nil
		}, client.UnsafeDisableDeepCopy)
	}
}

// Required returns the required sources in the order of messages.
func Required() []FactSource {
	return []FactSource{SourceClusterVersion, SourceOperators, SourceNodes, SourcePools}
}

// IsOptional reports whether clusters can be judged without the source.
func (s FactSource) IsOptional() bool {
	source, known := sources[s]
	return known && !source.required
}

// MissingOptional returns the missing optional sources, sorted.
func (f Facts) MissingOptional() []FactSource {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.Missing)), func(s FactSource) bool { return !s.IsOptional() })
}

// Unread returns the kinds that could not be read although findings of the phase refer to them. Such findings
// are neither confirmed nor resolved.
func (f Facts) Unread(phase RulePhase) []string {
	var kinds []string
	for _, missing := range slices.Sorted(maps.Keys(f.Missing)) {
		if s := sources[missing]; s.phases&phase != 0 {
			kinds = append(kinds, s.kind)
		}
	}
	return kinds
}
