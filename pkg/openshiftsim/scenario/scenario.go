// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario runs scenarios on a simulated OpenShift cluster. A scenario describes the
// cluster, the requested upgrades, the problems (*when* this holds, *after* that long, do this),
// and the expected result. Scenarios are YAML files that serve both as demos and as tests.
//
// The package works through a World in real or virtual time. Like a user, it knows the operator's
// objects only as YAML. It does not know how the operator works.
package scenario

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Scenario describes a run. Durations are in the time of the world, real or virtual. Durations of
// the simulated parts of the cluster are divided by its speed.
type Scenario struct {
	// Name is the file name without the extension.
	Name string `json:"name"`
	// Description describes the scenario in one sentence.
	Description string `json:"description"`
	// Binary restricts the scenario to dev clusters with the operator's binary. It is needed for
	// features that virtual time lacks, such as processes, permissions, leader election, and admission
	// policies.
	Binary bool `json:"binary,omitempty"`
	// Cluster describes the cluster.
	Cluster openshiftsim.ClusterSpec `json:"cluster"`
	// Objects are applied before the operator starts. The run waits until the Deployments among them
	// are available.
	Objects []map[string]any `json:"objects,omitempty"`
	// Operator configures the operator.
	Operator Operator `json:"operator"`
	// UpdateStatus installs the Update Status Controller, which analyzes UpdatePlans, and starts it
	// before the operator.
	UpdateStatus bool `json:"updateStatus,omitempty"`
	// UpgradeConfigs are objects of upgrade.managed.openshift.io. They are created in this order when
	// the operator is ready. If the list is unset and Maintenance is empty, it defaults to one object
	// with the highest release.
	UpgradeConfigs []UpgradeConfig `json:"upgradeConfigs,omitempty"`
	// Maintenance lists objects of managedupgrade.appuio.io, created in this order after the
	// UpgradeConfigs. The kinds are ClusterVersion, UpgradeConfig, UpgradeJob, UpgradeJobHook, and
	// UpgradeSuspensionWindow. The API version may be omitted, and the namespace defaults to the
	// operator's. In strings, "${now+90s}" stands for the time 90s after the creation, and
	// "${cron+90s}" for a cron expression in UTC that matches the first full minute after that. The
	// same variables work in the objects of actions.
	Maintenance []map[string]any `json:"maintenance,omitempty"`
	// Rules define what happens during the run.
	Rules []Rule `json:"rules,omitempty"`
	// Expect is the expected result. By default, all UpgradeConfigs must be Upgraded.
	Expect Expect `json:"expect"`
}

// Operator configures the operator.
type Operator struct {
	// Config is the operator's configuration file; apiVersion and kind may be omitted. By default,
	// alerts are checked and silenced if the cluster has monitoring, and the webhook notifies the
	// cluster's receiver. The variables ${PROMETHEUS_URL}, ${ALERTMANAGER_URL}, and ${RECEIVER_URL}
	// stand for the addresses of these servers.
	Config map[string]any `json:"config,omitempty"`
	// Replicas is the number of processes. It defaults to 1. Several replicas elect a leader.
	Replicas int `json:"replicas,omitempty"`
	// Stopped leaves it to a rule to start the operator.
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
	UpgradeAt string `json:"upgradeAt,omitempty"`
	// Version is spec.desired.version; it defaults to the highest release.
	Version string `json:"version,omitempty"`
	// Channel is spec.desired.channel; it defaults to the channel of the cluster.
	Channel string `json:"channel,omitempty"`
	// Spec is merged over the spec built from the fields above.
	Spec map[string]any `json:"spec,omitempty"`
}

// Object selects objects of a kind. Three kinds are not served by the API server and can be read
// but not changed: Alert and Silence, as returned by Alertmanager's API, and CloudEvent, as
// received by the cluster's receiver. The name and the namespace of an Alert come from its labels.
type Object struct {
	// APIVersion may be omitted for the kinds of OpenShift, Kubernetes, and this project that upgrades
	// use.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	// Namespace is the namespace. If it is empty, any namespace matches, as do cluster-scoped objects.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name. If it is empty, any name matches.
	Name string `json:"name,omitempty"`
}

// Rule describes an event during the run.
type Rule struct {
	// Name describes the event.
	Name string `json:"name"`
	// For selects the objects that the rule is about. If it is omitted, the rule applies once the
	// UpgradeConfigs have been created.
	For *Object `json:"for,omitempty"`
	// When is a CEL expression over "object" and "now" (the current time). The rule applies each time
	// the expression becomes true for an object. If it is omitted, the rule applies as soon as the
	// object exists. The expression is false if the object lacks a field.
	When string `json:"when,omitempty"`
	// After delays the actions. Prefer a condition: on a busy machine, the operator may be faster or
	// slower than the delay.
	After timescale.Duration `json:"after,omitempty"`
	// Do lists the actions in order.
	Do []Action `json:"do"`
	// Times is how often the rule applies. It defaults to 1. A rule without objects applies again as
	// soon as its actions are complete.
	Times int `json:"times,omitempty"`
}

// Action is an action of a rule. Exactly one field must be set.
type Action struct {
	// Wait waits for a duration.
	Wait timescale.Duration `json:"wait,omitempty"`
	// Patch patches an object or its status.
	Patch *Patch `json:"patch,omitempty"`
	// Apply creates or changes an object with server-side apply.
	Apply map[string]any `json:"apply,omitempty"`
	// Delete deletes an object. It defaults to the object that the rule applies to.
	Delete *Object `json:"delete,omitempty"`
	// Release adds a release or replaces the release with the same version.
	Release *updategraph.Release `json:"release,omitempty"`
	// Node powers a node on or off, breaks or repairs it, or changes the duration of its reboots.
	Node *Node `json:"node,omitempty"`
	// Operator stops, starts, kills, or restarts (kills and starts) all replicas. killLeader kills
	// only the leader.
	Operator string `json:"operator,omitempty"`
	// Configure replaces the operator's configuration file. It has the format of Operator.Config but
	// may be invalid. The operator reads the file every 10 seconds.
	Configure map[string]any `json:"configure,omitempty"`
	// APIServer stops, starts, or kills the API server. Its data and its address do not change.
	APIServer string `json:"apiServer,omitempty"`
	// Etcd stops, starts, or kills etcd. Its data and its address do not change.
	Etcd string `json:"etcd,omitempty"`
	// Fire makes an alert fire.
	Fire *alerting.Alert `json:"fire,omitempty"`
	// Resolve resolves all alerts with this name.
	Resolve string `json:"resolve,omitempty"`
	// Prometheus stops or starts Prometheus.
	Prometheus string `json:"prometheus,omitempty"`
	// Alertmanager stops or starts Alertmanager.
	Alertmanager string `json:"alertmanager,omitempty"`
	// Informer changes the responses of an update informer and starts it if it is not running.
	Informer *Informer `json:"informer,omitempty"`
	// Receiver stops or starts the receiver of the operator's webhook.
	Receiver string `json:"receiver,omitempty"`
	// Check fails the scenario unless the statement holds at that time.
	Check *Statement `json:"check,omitempty"`
	// Until waits until the statement holds.
	Until *Statement `json:"until,omitempty"`
	// Command runs a command and fails the scenario unless the result is as expected. When the
	// scenario ends, a rule with commands must have applied the maximum number of times.
	Command *Command `json:"command,omitempty"`
	// Denied waits until admission control denies the creation of the object, for example until a
	// ValidatingAdmissionPolicy takes effect. The object is never created.
	Denied map[string]any `json:"denied,omitempty"`
}

// Patch is a JSON merge patch.
type Patch struct {
	// For selects the object. It defaults to the object that the rule applies to.
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
	// Name is the name of the UpdateInformer and of its Service in the namespace informers.
	Name string `json:"name"`
	// Stop stops the server but keeps its objects.
	Stop bool `json:"stop,omitempty"`

	informer.Behavior `json:",inline"`
}

// InformerNamespace is the namespace of the informers' Services.
const InformerNamespace = "informers"

// Node changes a node.
type Node struct {
	machineconfig.Node `json:",inline"`
	// Down powers the node off if true and on if false.
	Down *bool `json:"down,omitempty"`
}

// Apply changes the behavior of the node. Unset fields have no effect.
func (n Node) Apply(config *machineconfig.Simulator, kubelets *kubelet.Kubelets) {
	config.SetNode(n.Node)
	if n.Down != nil {
		kubelets.SetDown(n.Name, *n.Down)
	}
}

// Expect is the expected result of a run.
type Expect struct {
	// Within is the time limit, starting when the UpgradeConfigs are created. It defaults to 3m.
	Within timescale.Duration `json:"within,omitempty"`
	// StableFor is how long the expectations must stay met.
	StableFor timescale.Duration `json:"stableFor,omitempty"`
	// UpgradeConfigs are the expected results of UpgradeConfigs.
	UpgradeConfigs []ExpectedUpgrade `json:"upgradeConfigs,omitempty"`
	// UpgradeJobs are the expected results of UpgradeJobs.
	UpgradeJobs []ExpectedUpgradeJob `json:"upgradeJobs,omitempty"`
	// ClusterVersion is the expected version of the cluster.
	ClusterVersion *ExpectedVersion `json:"clusterVersion,omitempty"`
	// Notifications are types of received CloudEvents without their common prefix, as in [started,
	// completed]. Of the listed types, exactly these events must have been received, in this order.
	// Events of other types are ignored.
	Notifications []string `json:"notifications,omitempty"`
	// Finally lists statements that must hold at the end.
	Finally []Statement `json:"finally,omitempty"`
	// Eventually lists statements that must have held at some time.
	Eventually []Statement `json:"eventually,omitempty"`
	// Never lists statements that must not have held at any time.
	Never []Statement `json:"never,omitempty"`
}

// ExpectedUpgrade is the expected result of an UpgradeConfig or an UpgradeJob.
type ExpectedUpgrade struct {
	// Name is the name. That of an UpgradeConfig defaults to "example-upgrade-config".
	Name string `json:"name,omitempty"`
	// Gone requires that the object does not exist.
	Gone bool `json:"gone,omitempty"`
	// Phase is the phase of the newest attempt; it defaults to "Upgraded".
	Phase string `json:"phase,omitempty"`
	// Conditions are the top-level conditions by type, such as "True" or "False/WindowMissed".
	Conditions map[string]string `json:"conditions,omitempty"`
	// Steps are the conditions of the newest attempt by type, in the same format.
	Steps map[string]string `json:"steps,omitempty"`
}

// ExpectedUpgradeJob is the expected result of an UpgradeJob. Exactly one of Name and Config must
// be set.
type ExpectedUpgradeJob struct {
	ExpectedUpgrade `json:",inline"`
	// Config is an UpgradeConfig of managedupgrade.appuio.io. It selects the config's first job by
	// slot.
	Config string `json:"config,omitempty"`
}

// ExpectedVersion is the expected version of the cluster.
type ExpectedVersion struct {
	// Version is the version of the newest history element.
	Version string `json:"version,omitempty"`
	// State is the state of the newest history element; it defaults to "Completed".
	State string `json:"state,omitempty"`
	// Requests is how often spec.desiredUpdate was changed to another version, not counting removals.
	Requests *int `json:"requests,omitempty"`
	// DesiredUpdate is the version in spec.desiredUpdate at the end. "none" requires that it is unset.
	DesiredUpdate string `json:"desiredUpdate,omitempty"`
}

// Statement is a condition on objects.
type Statement struct {
	// For selects the objects. The statement holds if it holds for at least one of them.
	For Object `json:"for"`
	// That is a CEL expression over "object" and "now" (the current time). It is false if the object
	// lacks a field.
	That string `json:"that"`
}

// Default values.
const (
	defaultName   = "example-upgrade-config"
	defaultType   = "OSD"
	phaseUpgraded = "Upgraded"
	completed     = "Completed"
)
