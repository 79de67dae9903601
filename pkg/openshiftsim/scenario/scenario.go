// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario runs scenarios on a simulated OpenShift cluster: the cluster, the requested
// upgrades, what goes wrong (*when* this holds, *after* that long, do this), and the expected
// result. Scenarios are YAML files; the same files are demos and tests.
//
// The package works through a World, which runs in real or in virtual time. It knows the objects of
// the operator by their YAML alone, as a user does, and does not know how the operator works.
package scenario

import (
	"encoding/json"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Scenario describes a run. Durations are real ones, or virtual ones in virtual time. Durations of
// the simulated parts of the cluster are divided by its speed.
type Scenario struct {
	// Name is the name of the file without its extension.
	Name string `json:"name"`
	// Description describes the scenario in a sentence.
	Description string `json:"description"`
	// Binary restricts the scenario to a dev cluster with the operator's program: it needs parts
	// that virtual time does not have, such as processes, permissions, leader election, or an
	// admission policy.
	Binary bool `json:"binary,omitempty"`
	// Cluster describes the cluster.
	Cluster openshiftsim.Spec `json:"cluster"`
	// Objects are applied before the operator starts, which waits for Deployments among them.
	Objects []map[string]any `json:"objects,omitempty"`
	// Operator configures the operator.
	Operator Operator `json:"operator"`
	// UpdateStatus installs the Update Status Controller, which analyzes UpdatePlans, and starts it before
	// the operator.
	UpdateStatus bool `json:"updateStatus,omitempty"`
	// UpgradeConfigs are objects of upgrade.managed.openshift.io, created in this order when the
	// operator is ready. They default to one with the highest release, unless there is Maintenance or the
	// list is empty.
	UpgradeConfigs []UpgradeConfig `json:"upgradeConfigs,omitempty"`
	// Maintenance lists objects of managedupgrade.appuio.io, created in this order after the
	// UpgradeConfigs: of the kinds ClusterVersion, UpgradeConfig, UpgradeJob, UpgradeJobHook, and
	// UpgradeSuspensionWindow. The API version may be left out; the namespace defaults to the
	// operator's. In texts, "${now+90s}" is the time 90s after the creation, and "${cron+90s}" a cron
	// expression that matches the first full minute after that, in UTC; so they are in the objects of
	// actions.
	Maintenance []map[string]any `json:"maintenance,omitempty"`
	// Rules define what happens during the run.
	Rules []Rule `json:"rules,omitempty"`
	// Expect is the expected result. By default, all UpgradeConfigs are Upgraded.
	Expect Expect `json:"expect"`
}

// Operator configures the operator.
type Operator struct {
	// Config is the operator's configuration file; apiVersion and kind may be left out. By default,
	// alerts are checked and silenced if the cluster has monitoring, and the webhook notifies the
	// cluster's receiver. The variables ${PROMETHEUS_URL}, ${ALERTMANAGER_URL}, and ${RECEIVER_URL}
	// stand for the addresses of these servers.
	Config map[string]any `json:"config,omitempty"`
	// Replicas is the number of processes; it defaults to 1. Several elect a leader.
	Replicas int `json:"replicas,omitempty"`
	// Stopped leaves the start of the operator to a rule.
	Stopped bool `json:"stopped,omitempty"`
}

// UpgradeConfig describes an UpgradeConfig in the operator's namespace.
type UpgradeConfig struct {
	// Name defaults to "example-upgrade-config".
	Name string `json:"name,omitempty"`
	// Type is spec.type; it defaults to "OSD".
	Type string `json:"type,omitempty"`
	// UpgradeAt is spec.upgradeAt as an offset from the creation of the object, such as "+5s" or
	// "-1h"; it defaults to "+0s".
	UpgradeAt Offset `json:"upgradeAt,omitempty"`
	// Version is spec.desired.version; it defaults to the highest release.
	Version string `json:"version,omitempty"`
	// Channel is spec.desired.channel; it defaults to the channel of the cluster.
	Channel string `json:"channel,omitempty"`
	// Spec is merged over the spec that consists of the above.
	Spec map[string]any `json:"spec,omitempty"`
}

// Object selects objects of a kind. The API server does not serve three of the kinds, which can be
// read but not changed: Alert and Silence, as Alertmanager's API returns them, and CloudEvent, as
// the cluster's receiver got it. The labels of an Alert define its name and its namespace.
type Object struct {
	// APIVersion may be left out for the kinds of OpenShift, Kubernetes, and this project that
	// upgrades use.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	// Namespace is the namespace; empty means any, or none if the kind has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name; empty means any.
	Name string `json:"name,omitempty"`
}

// Rule is something that happens during the run.
type Rule struct {
	// Name describes what happens.
	Name string `json:"name"`
	// For selects the objects that the rule is about. If it is left out, the rule applies when the
	// UpgradeConfigs have been created.
	For *Object `json:"for,omitempty"`
	// When is a CEL expression over "object" and "now", the time. The rule applies each time that
	// it becomes true for an object. If it is left out, the rule applies as soon as the object
	// exists. The expression is false if the object lacks a field.
	When string `json:"when,omitempty"`
	// After is a delay before the actions. Prefer a condition: on a loaded machine, the operator
	// may be faster or slower than a delay.
	After timescale.Duration `json:"after,omitempty"`
	// Do lists the actions in order.
	Do []Action `json:"do"`
	// Times is how often the rule applies; it defaults to 1. A rule without objects applies again
	// as soon as its actions are complete.
	Times int `json:"times,omitempty"`
}

// Action is something that a rule does. Exactly one field is set.
type Action struct {
	// Wait waits for a time.
	Wait timescale.Duration `json:"wait,omitempty"`
	// Patch patches an object or its status.
	Patch *Patch `json:"patch,omitempty"`
	// Apply creates or changes an object by server-side apply.
	Apply map[string]any `json:"apply,omitempty"`
	// Delete deletes an object; by default the one that the rule applies to.
	Delete *Object `json:"delete,omitempty"`
	// Release adds a release, or replaces the one of that version.
	Release *updategraph.Release `json:"release,omitempty"`
	// Node powers a node off or on, breaks or repairs it, or changes the duration of its reboots.
	Node *Node `json:"node,omitempty"`
	// Operator stops, starts, kills, or restarts (kills and starts) all replicas; killLeader kills
	// the leader.
	Operator string `json:"operator,omitempty"`
	// Configure replaces the operator's configuration file; it has the form of Operator.Config and
	// may be invalid. The operator reads the file every ten seconds.
	Configure map[string]any `json:"configure,omitempty"`
	// APIServer stops, starts, or kills the API server. Data and address are kept.
	APIServer string `json:"apiServer,omitempty"`
	// Etcd stops, starts, or kills etcd. Data and address are kept.
	Etcd string `json:"etcd,omitempty"`
	// Fire makes an alert fire.
	Fire *alerting.Alert `json:"fire,omitempty"`
	// Resolve resolves all alerts of that name.
	Resolve string `json:"resolve,omitempty"`
	// Prometheus stops or starts Prometheus.
	Prometheus string `json:"prometheus,omitempty"`
	// Alertmanager stops or starts Alertmanager.
	Alertmanager string `json:"alertmanager,omitempty"`
	// Informer changes how an update informer answers, and starts it if it is not running.
	Informer *Informer `json:"informer,omitempty"`
	// Receiver stops or starts the receiver of the operator's webhook.
	Receiver string `json:"receiver,omitempty"`
	// Check fails the scenario unless the statement holds at that moment.
	Check *Statement `json:"check,omitempty"`
	// Until waits until the statement holds.
	Until *Statement `json:"until,omitempty"`
	// Command runs a command, and fails the scenario unless it does what it must. A rule with commands must
	// have applied as often as it may when the scenario ends.
	Command *Command `json:"command,omitempty"`
	// Denied waits until admission control denies the creation of the object, for example because a
	// ValidatingAdmissionPolicy is in effect. The object is never created.
	Denied map[string]any `json:"denied,omitempty"`
}

// Patch is a JSON merge patch.
type Patch struct {
	// For selects the object; it defaults to the one that the rule applies to.
	For *Object `json:"for,omitempty"`
	// With is the patch.
	With map[string]any `json:"with"`
	// Status patches the status subresource.
	Status bool `json:"status,omitempty"`
	// Conditions sets status conditions by type, as in "Degraded: True/NoQuorum: it has no quorum".
	Conditions map[string]string `json:"conditions,omitempty"`
}

// Informer is an update informer: an HTTPS server at the cluster IP of its Service.
type Informer struct {
	// Name is the name of the UpdateInformer and of its Service, in namespace informers.
	Name string `json:"name"`
	// Stop ends the server; its objects are kept.
	Stop bool `json:"stop,omitempty"`

	informer.Behavior `json:",inline"`
}

// InformerNamespace is the namespace of the Services of informers.
const InformerNamespace = "informers"

// Node changes a node.
type Node struct {
	machineconfig.Node `json:",inline"`
	// Down powers the node off, or on if it is false.
	Down *bool `json:"down,omitempty"`
}

// Apply changes the behavior of the node. Unset fields change nothing.
func (n Node) Apply(config *machineconfig.Simulator, kubelets *kubelet.Kubelets) {
	config.SetNode(n.Node)
	if n.Down != nil {
		kubelets.SetDown(n.Name, *n.Down)
	}
}

// Expect is the expected result of a run.
type Expect struct {
	// Within is the time limit, from the creation of the UpgradeConfigs; it defaults to 3m.
	Within timescale.Duration `json:"within,omitempty"`
	// StableFor is how long the expectations must remain met.
	StableFor timescale.Duration `json:"stableFor,omitempty"`
	// UpgradeConfigs are the expected results of UpgradeConfigs.
	UpgradeConfigs []ExpectedUpgradeConfig `json:"upgradeConfigs,omitempty"`
	// UpgradeJobs are the expected results of UpgradeJobs.
	UpgradeJobs []ExpectedUpgradeJob `json:"upgradeJobs,omitempty"`
	// ClusterVersion is the expected version of the cluster.
	ClusterVersion *ExpectedVersion `json:"clusterVersion,omitempty"`
	// Notifications are the types of the CloudEvents that the receiver got, without their common
	// prefix, as in [started, completed]. The receiver must have got exactly these of the named
	// types, in this order. Events of other types may be in between.
	Notifications []string `json:"notifications,omitempty"`
	// Finally lists statements that hold in the end.
	Finally []Statement `json:"finally,omitempty"`
	// Eventually lists statements that held at some time.
	Eventually []Statement `json:"eventually,omitempty"`
	// Never lists statements that held at no time.
	Never []Statement `json:"never,omitempty"`
}

// ExpectedUpgradeConfig is the expected result of an UpgradeConfig.
type ExpectedUpgradeConfig struct {
	// Name defaults to "example-upgrade-config".
	Name string `json:"name,omitempty"`
	// Gone means that the object does not exist.
	Gone bool `json:"gone,omitempty"`
	// Phase is the phase of the newest history element; it defaults to "Upgraded".
	Phase string `json:"phase,omitempty"`
	// Conditions are the top-level conditions by type, as in "True" or "False/WindowMissed".
	Conditions map[string]string `json:"conditions,omitempty"`
	// Steps are the conditions of the newest history element by type, in the same format.
	Steps map[string]string `json:"steps,omitempty"`
}

// ExpectedUpgradeJob is the expected result of an UpgradeJob. Either Name or Config is set.
type ExpectedUpgradeJob struct {
	// Name is the name.
	Name string `json:"name,omitempty"`
	// Config is the UpgradeConfig of managedupgrade.appuio.io whose first job, by its slot, is meant.
	Config string `json:"config,omitempty"`
	// Gone means that there is no such object.
	Gone bool `json:"gone,omitempty"`
	// Phase is the phase of the newest attempt; it defaults to "Upgraded".
	Phase string `json:"phase,omitempty"`
	// Conditions are the top-level conditions by type, as in "True" or "False/Expired".
	Conditions map[string]string `json:"conditions,omitempty"`
	// Steps are the conditions of the newest attempt by type, in the same format.
	Steps map[string]string `json:"steps,omitempty"`
}

// ExpectedVersion is the expected version of the cluster.
type ExpectedVersion struct {
	// Version is the version of the newest history element.
	Version string `json:"version,omitempty"`
	// State is the state of the newest history element; it defaults to "Completed".
	State string `json:"state,omitempty"`
	// Requests is the number of changes of spec.desiredUpdate to another version. Its removal does
	// not count.
	Requests *int `json:"requests,omitempty"`
	// DesiredUpdate is the version in spec.desiredUpdate in the end; "none" means that it must be
	// unset.
	DesiredUpdate string `json:"desiredUpdate,omitempty"`
}

// Statement is a statement about objects.
type Statement struct {
	// For selects the objects. The statement holds if it holds for one of them.
	For Object `json:"for"`
	// That is a CEL expression over "object" and "now", the time. It is false if the object lacks a
	// field.
	That string `json:"that"`
}

// Defaults.
const (
	defaultName   = "example-upgrade-config"
	defaultType   = "OSD"
	phaseUpgraded = "Upgraded"
	completed     = "Completed"
)

var _ json.Unmarshaler = (*Offset)(nil)
