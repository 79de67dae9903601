// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"slices"
	"strconv"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// Reasons of findings that only the assessment makes.
const (
	// ReasonOperatorStalled is the reason if an operator in progress has not changed for too long.
	ReasonOperatorStalled = "OperatorStalled"
	// ReasonControlPlaneStalled is the reason if the control plane has stopped updating.
	ReasonControlPlaneStalled = "ControlPlaneStalled"
	// ReasonDrainStalled is the reason if a drain takes too long and nothing will end it.
	ReasonDrainStalled = "DrainStalled"
	// ReasonNodeStalled is the reason if a node in progress has not changed for too long.
	ReasonNodeStalled = "NodeStalled"
	// ReasonPoolStalled is the reason if no node of a pool is being updated although nothing pauses the pool.
	ReasonPoolStalled = "PoolStalled"
	// reasonSelectedByBudgets is the reason if several PodDisruptionBudgets select a pod. The Eviction API
	// refuses such a pod regardless of the disruptions that the budgets allow.
	reasonSelectedByBudgets = "PodSelectedByBudgets"
	// reasonPoolPaused is the reason if a user has paused a pool with outdated nodes.
	reasonPoolPaused = "PoolPaused"
	// reasonDrainNotCordoned is the reason if another client has uncordoned a node during its drain.
	reasonDrainNotCordoned = "DrainNotCordoned"
	// Reasons of built-in informers for findings that block an update.
	reasonReleaseRefused = "ReleaseRefused"
	reasonRequestRefused = "RequestRefused"
	reasonUpgradeFailed  = "UpgradeFailed"
	reasonVersionFailing = "ClusterVersionFailing"
	// ReasonOther is the reason of the cause that merges the causes above the limit.
	ReasonOther = "Other"
)

func stalledReason(reason string) bool {
	return slices.Contains([]string{ReasonOperatorStalled, ReasonControlPlaneStalled, ReasonDrainStalled, ReasonNodeStalled, ReasonPoolStalled}, reason)
}

// row holds the texts for a reason. In the texts, {names} stands for the names of up to three objects and
// {count} for the number of objects. In commands, {object}, {namespace}, and {resource} stand for one object,
// and there is one command per object. A command with {resource} but without {namespace} gets a namespace
// option if the object has a namespace.
type row struct {
	reason string
	// one and many are the clauses for one object and for several.
	one, many string
	// kind is the type of the remedy: the command removes the cause, it shows the object, or nothing needs to
	// be done.
	kind updatev1beta1.RemedyType
	// text is one sentence. It ends with a colon if there is a command.
	text, command string
}

// drainWaits describes nodes whose pods block the drain.
var drainWaits = &row{one: "drain of node {names} waits for its pods", many: "drains of nodes {names} wait for their pods"}

// clause returns the clause about a number of objects. Only count of them have a name.
func (r *row) clause(objects int, names string, count int) string {
	pattern := r.one
	if objects > 1 && r.many != "" {
		pattern = r.many
	}
	return strings.NewReplacer("{names}", names, "{count}", strconv.Itoa(count)).Replace(pattern)
}

const (
	fixes     = updatev1beta1.RemedyFixes
	diagnoses = updatev1beta1.RemedyDiagnoses
	none      = updatev1beta1.RemedyNone
)

// nothing is the text for reasons that are normal.
const nothing = "Nothing."

// Commands that several reasons share.
const (
	describeVersion  = "oc describe clusterversion version"
	describeOperator = "oc describe clusteroperator {object}"
	describeNode     = "oc describe node {object}"
	describePool     = "oc describe machineconfigpool {object}"
	describePod      = "oc -n {namespace} describe pod {object}"
	describeInformer = "oc describe updateinformer {object}"
	getUpgrade       = "oc -n {namespace} get {resource} {object} -o yaml"
	allInsights      = "oc update status --details"
)

// rows has one row for each reason of the assessment, the built-in informers, and the Update Status
// Controller. Tests compare it with the code that sets reasons and with
// docs/concepts/update-troubleshooting.md.
var rows = []row{
	{ReasonOperatorStalled, "ClusterOperator {names} has not changed for too long", "ClusterOperators {names} have not changed for too long", diagnoses, "Find out what the operator waits for:", describeOperator},
	{ReasonControlPlaneStalled, "the cluster version operator has updated nothing for too long", "", diagnoses, "Find out what the cluster version operator waits for:", describeVersion},
	{ReasonDrainStalled, "drain of node {names} cannot finish, and nothing forces it", "drains of nodes {names} cannot finish, and nothing forces them", diagnoses, "Find out which pods are still on the node:", "oc get pods --all-namespaces -o wide --field-selector spec.nodeName={object}"},
	{ReasonNodeStalled, "node {names} has not changed for too long", "nodes {names} have not changed for too long", diagnoses, "Find out why the node does not continue:", describeNode},
	{ReasonPoolStalled, "no node of pool {names} is being updated", "no nodes of pools {names} are being updated", diagnoses, "Find out why the pool does not continue:", "oc describe {resource} {object}"},
	{ReasonOther, "{count} more objects are affected", "{count} more objects are affected", diagnoses, "See all insights:", allInsights},

	{"ClusterVersionFailing", "ClusterVersion is failing", "", diagnoses, "Find out why it is failing:", describeVersion},
	{"ClusterVersionFailingUnknown", "it is unknown whether ClusterVersion is failing", "", diagnoses, "Look at its conditions:", describeVersion},
	{"ReleaseRefused", "the cluster version operator refuses the requested release", "", diagnoses, "Find out why it refuses the release:", describeVersion},
	{reasonRequestRefused, "the cluster version operator refuses another requested release", "", fixes, "Withdraw the request:", "oc adm upgrade --clear"},
	{"PreviousUpdateIncomplete", "the previous update was not completed", "", diagnoses, "Look at the history:", describeVersion},
	{"OperatorUnavailable", "ClusterOperator {names} is not available", "ClusterOperators {names} are not available", diagnoses, "Find out why the operator fails:", describeOperator},
	{"OperatorDegraded", "ClusterOperator {names} is degraded", "ClusterOperators {names} are degraded", diagnoses, "Find out why the operator fails:", describeOperator},
	{"OperatorStateUnknown", "ClusterOperator {names} does not report whether it is available and degraded", "ClusterOperators {names} do not report whether they are available and degraded", diagnoses, "Find out why the operator does not report it:", describeOperator},
	{"ControlPlaneUpdating", "the control plane is being updated", "", none, nothing, ""},
	{"ControlPlaneInstalling", "the cluster is being installed", "", none, nothing, ""},
	{"ControlPlaneMigrating", "the control plane is being updated to another image of its version", "", none, nothing, ""},
	{"OperatorUpdating", "ClusterOperator {names} is being updated", "ClusterOperators {names} are being updated", none, nothing, ""},
	{"OperatorsNotAnnotated", "all ClusterOperators count as parts of the release", "", none, nothing, ""},

	{"NodeDegraded", "node {names} cannot be updated", "nodes {names} cannot be updated", diagnoses, "Find out what the machine config daemon reports:", describeNode},
	{"NodeUnreconcilable", "the configuration of node {names} cannot be reconciled", "the configurations of nodes {names} cannot be reconciled", diagnoses, "Find out what the machine config daemon reports:", describeNode},
	{reasonDrainNotCordoned, "node {names} can be scheduled although its drain is requested", "nodes {names} can be scheduled although their drains are requested", fixes, "Cordon the node; its drain then continues:", "oc adm cordon {object}"},
	{"NodeInSeveralPools", "node {names} is in several custom pools and is not updated", "nodes {names} are in several custom pools and are not updated", diagnoses, "Remove the labels by which all but one of the custom pools select the node:", "oc get node {object} --show-labels"},
	{"NodeNotReady", "node {names} is not ready", "nodes {names} are not ready", diagnoses, "Find out why the node is not ready:", describeNode},
	{"NodeDiskPressure", "node {names} has too little disk space", "nodes {names} have too little disk space", diagnoses, "Find out what uses the disk:", describeNode},
	{"NodeNetworkUnavailable", "node {names} has no network", "nodes {names} have no network", diagnoses, "Find out why the node has no network:", describeNode},
	{"NodeUpdating", "node {names} is being updated", "nodes {names} are being updated", none, nothing, ""},
	{"NodeDraining", "node {names} is being drained", "nodes {names} are being drained", none, nothing, ""},
	{"NodeRebooting", "node {names} is rebooting", "nodes {names} are rebooting", none, nothing, ""},
	{"PodHeldByBudget", "pod {names} cannot be evicted", "pods {names} cannot be evicted", diagnoses, "Find out why the budget allows no disruption:", "oc -n {namespace} get {resource} {object} -o yaml"},
	{reasonSelectedByBudgets, "PodDisruptionBudget {names} is one of several that select the same pod, so the pod can never be evicted", "PodDisruptionBudgets {names} select the same pods, so the pods can never be evicted", diagnoses, "Delete one of the budgets, or change its selector:", "oc -n {namespace} get {resource} {object} -o yaml"},
	{"PodNotEvicted", "pod {names} is not evicted yet", "pods {names} are not evicted yet", diagnoses, "Find out why the pod is not evicted:", describePod},
	{"PodTerminating", "pod {names} does not terminate", "pods {names} do not terminate", diagnoses, "Find out why the pod does not terminate:", describePod},
	{"PodKeptByFinalizers", "pod {names} is kept by finalizers", "pods {names} are kept by finalizers", diagnoses, "Find out who owns the finalizers:", "oc -n {namespace} get pod {object} -o yaml"},
	{"PoolDegraded", "pool {names} is degraded", "pools {names} are degraded", diagnoses, "Find out why the pool is degraded:", describePool},
	{reasonPoolPaused, "pool {names} is paused and has outdated nodes", "pools {names} are paused and have outdated nodes", fixes, "Unpause the pool when its nodes may reboot:", `oc patch machineconfigpool {object} --type=merge -p '{"spec":{"paused":false}}'`},
	{"PoolDelayed", "pool {names} is delayed", "pools {names} are delayed", none, nothing, ""},
	{updatev1beta1.ReasonPaused, "the update of {names} is paused", "the updates of {names} are paused", diagnoses, "Find out why the update is paused:", "oc get {resource} {object} -o yaml"},

	{"AlertFiring", "alert {names} is firing", "alerts {names} are firing", diagnoses, "Read what the alert reports:", allInsights},
	{"CriticalAlertFiring", "critical alert {names} is firing", "critical alerts {names} are firing", diagnoses, "Read what the alert reports:", allInsights},

	{"UpgradeFailed", "upgrade {names} failed", "upgrades {names} failed", diagnoses, "Find out why the upgrade failed:", getUpgrade},
	{"UpgradeStepSlow", "upgrade {names} is slow", "upgrades {names} are slow", diagnoses, "Find out what the upgrade waits for:", getUpgrade},
	{"UpgradeStepUnknown", "the state of upgrade {names} is unknown", "the states of upgrades {names} are unknown", diagnoses, "Find out why the state is unknown:", getUpgrade},
	{"UpgradePreCheckFailed", "the pre-check of upgrade {names} found problems", "the pre-checks of upgrades {names} found problems", diagnoses, "Find out what the pre-check found:", getUpgrade},
	{"UpgradeNotAccepted", "upgrade {names} is not accepted", "upgrades {names} are not accepted", diagnoses, "Find out why the upgrade is not accepted:", getUpgrade},
	{"UpgradeInProgress", "upgrade {names} is in progress", "upgrades {names} are in progress", none, nothing, ""},
	{"UpgradeStepRunning", "upgrade {names} is in progress", "upgrades {names} are in progress", none, nothing, ""},
	{"UpgradeScheduled", "upgrade {names} is scheduled", "upgrades {names} are scheduled", none, nothing, ""},
	{"UpgradeDue", "upgrade {names} is due", "upgrades {names} are due", none, nothing, ""},
	{"UpgradePaused", "upgrade {names} is paused", "upgrades {names} are paused", none, nothing, ""},

	{updatev1beta1.ReasonInformerDegraded, "informer {names} is degraded", "informers {names} are degraded", diagnoses, "Find out what the informer reports about itself:", describeInformer},
	{updatev1beta1.ReasonInformerUnreachable, "informer {names} does not answer", "informers {names} do not answer", diagnoses, "Find out why the informer does not answer:", describeInformer},
	{updatev1beta1.ReasonInformerWaiting, "informer {names} is still preparing its answer", "informers {names} are still preparing their answers", diagnoses, "Find out what the informer waits for:", describeInformer},
	{updatev1beta1.ReasonInformerFailed, "informer {names} cannot determine its insights", "informers {names} cannot determine their insights", diagnoses, "Find out why the informer fails:", describeInformer},
	{updatev1beta1.ReasonInformerInvalid, "informer {names} gives an invalid answer", "informers {names} give invalid answers", diagnoses, "Find out what is invalid:", describeInformer},
	{updatev1beta1.ReasonScopeMutated, "informer {names} changes the scopes of its insights", "informers {names} change the scopes of their insights", diagnoses, "Report it to the owner of the informer:", describeInformer},
	{updatev1beta1.ReasonUnstableIdentifiers, "informer {names} changes the uids of its insights", "informers {names} change the uids of their insights", diagnoses, "Report it to the owner of the informer:", describeInformer},
	{updatev1beta1.ReasonInformerDisabled, "informer {names} is disabled", "informers {names} are disabled", none, nothing, ""},
	{updatev1beta1.ReasonTruncated, "not all insights are shown", "", none, nothing, ""},
}

var byReason = func() map[string]*row {
	index := make(map[string]*row, len(rows))
	for i := range rows {
		index[rows[i].reason] = &rows[i]
	}
	return index
}()
