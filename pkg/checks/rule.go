// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// RulePhase is a context in which findings are used.
type RulePhase uint8

// Phases of rules.
const (
	// Gate is the phase for the health gates of an upgrade.
	Gate RulePhase = 1 << iota
	// Plan is the phase for UpdatePlans, before an update starts.
	Plan
	// Update is the phase for the status of an update.
	Update
)

// Rule turns facts into findings. It is pure. The same implementation serves all phases.
type Rule struct {
	// Name identifies the rule in options and metrics.
	Name string
	// Doc describes the rule's findings in one sentence.
	Doc string
	// Informer is the built-in informer that reports the findings in the phase Update.
	Informer string
	// Needs lists the sources that the rule reads. A missing source is an error in a gate and a finding in a
	// plan.
	Needs []FactSource
	// Phases are the phases of the rule.
	Phases RulePhase
	// Find returns the findings. Their levels may depend on the phase. A missing source yields no findings.
	Find func(Facts, RulePhase) []Finding
}

// rules is in the order of findings. Alerts are last among the gates, because the findings of other rules
// determine whether alerts are queried before the interval has passed.
var rules = []Rule{
	{
		Name: "risks", Needs: []FactSource{SourceClusterVersion}, Phases: Plan, Find: findRisks,
		Doc: "The release has known risks.",
	},
	{
		Name: "offer", Needs: []FactSource{SourceClusterVersion}, Phases: Plan, Find: findOffer,
		Doc: "The release cannot be requested by its version.",
	},
	{
		Name: "other-update", Needs: []FactSource{SourceClusterVersion}, Phases: Plan, Find: findOtherUpdate,
		Doc: "Another update is in progress or requested.",
	},
	{
		Name: "upgradeable", Needs: []FactSource{SourceClusterVersion}, Phases: Plan, Find: findUpgradeable,
		Doc: "The cluster may not leave its minor version.",
	},
	{
		Name: "admin-acks", Needs: []FactSource{SourceAdminGates}, Phases: Plan, Find: findAdminAcks,
		Doc: "An administrator has not acknowledged what the release requires.",
	},
	{
		Name: "removed-apis", Needs: []FactSource{SourceAPIRequests}, Phases: Plan, Find: findRemovedAPIs,
		Doc: "Clients use an API that the release removes.",
	},
	{
		Name: "version", Informer: InformerControlPlane, Needs: []FactSource{SourceClusterVersion}, Phases: Gate | Plan | Update, Find: findVersion,
		Doc: "The cluster version operator is failing. During an update, also what it installs and refuses.",
	},
	{
		Name: NameOperators, Informer: InformerControlPlane, Needs: []FactSource{SourceOperators}, Phases: Gate | Plan | Update, Find: findOperators,
		Doc: "ClusterOperators are unavailable or degraded, or do not report it. During an update, also those that are being updated.",
	},
	{
		Name: NamePools, Needs: []FactSource{SourcePools, SourceNodes}, Phases: Gate | Plan, Find: findPools,
		Doc: "Machine config pools are degraded, paused although they have machines, or select the same nodes.",
	},
	{
		Name: "rollout", Needs: rolloutNeeds, Phases: Gate, Find: findRollout,
		Doc: "An update is still being installed, on the control plane or on the nodes of a pool.",
	},
	{
		Name: "nodes", Informer: InformerNodes, Needs: []FactSource{SourceNodes, SourceMachines}, Phases: Gate | Plan | Update, Find: findNodes,
		Doc: "Nodes are not ready, cordoned by hand, or under pressure. During an update, also those that are being updated, and what holds their drains.",
	},
	{
		Name: "pdbs", Needs: []FactSource{SourcePDBs, SourcePDBOverlaps}, Phases: Gate | Plan, Find: findPDBs,
		Doc: "PodDisruptionBudgets block a drain forever: in a gate, only in namespaces where drains are never forced.",
	},
	{
		Name: "capacity", Needs: []FactSource{SourcePodRequests, SourceNodes, SourcePools}, Phases: Plan, Find: findCapacity,
		Doc: "The pods of drained nodes do not fit on the other nodes of their pool.",
	},
	{
		Name: "etcd", Needs: []FactSource{SourceEtcd}, Phases: Plan, Find: findEtcd,
		Doc: "Etcd is not healthy.",
	},
	{
		Name: "certificates", Needs: []FactSource{SourcePools}, Phases: Plan, Find: findCertificates,
		Doc: "A certificate of a pool expires soon.",
	},
	{
		Name: "optional-operators", Needs: []FactSource{SourceOptionalOperators}, Phases: Plan, Find: findOptionalOperators,
		Doc: "An optional operator is not ready, or does not support the release.",
	},
	{
		Name: "lock", Needs: []FactSource{SourceLock}, Phases: Plan, Find: findLock,
		Doc: "Another upgrade is in progress.",
	},
	{
		Name: NameObjects, Needs: []FactSource{SourceObjects}, Phases: Gate, Find: findObjects,
		Doc: "An object does not satisfy its condition, or does not exist.",
	},
	{
		Name: NameQueries, Needs: []FactSource{SourceQueries}, Phases: Gate, Find: findQueries,
		Doc: "The result of a custom query has samples.",
	},
	{
		Name: NameAlerts, Informer: InformerAlerts, Needs: []FactSource{SourceAlerts, SourceCriticalAlerts}, Phases: Gate | Plan | Update, Find: findAlerts,
		Doc: "Critical alerts are firing, or pending after an upgrade; in a plan, also those that warn. During an update, those that began during it.",
	},
	{
		Name: "upgrades", Informer: InformerUpgrades, Phases: Update, Find: findUpgrades,
		Doc: "UpgradeConfigs and UpgradeJobs are in progress, wait, or have failed.",
	},
}

// Rules returns the rules.
func Rules() []Rule { return slices.Clone(rules) }

func rulesOf(phase RulePhase) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return r.Phases&phase == 0 })
}

// Names of rules that upgrade objects may select.
const (
	NameOperators = "operators"
	NamePools     = "pools"
	NameObjects   = "objects"
	NameQueries   = "queries"
	NameAlerts    = "alerts"
)

// newFinding returns an error-level finding about one object of the control plane.
func newFinding(reason, summary string, resources ...Resource) Finding {
	return controlPlane.finding(LevelError, TypeUpdateStalled, reason, summary, resources...)
}

// unknownFinding returns a finding for something that could not be determined. A gate reports the error
// instead.
func unknownFinding(reason, id, summary string, err error) Finding {
	f := about(LevelWarning, TypeUnknown, reason, id, summary)
	f.Description, f.Err = text.Reason(err.Error()), err
	return f
}
