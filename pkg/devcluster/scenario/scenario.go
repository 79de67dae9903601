// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario plays stories on a dev cluster: what the cluster is like, which upgrades it is asked for, what goes
// wrong meanwhile (*when* this holds, *after* that long, do this), and what is expected in the end. The stories are YAML
// files, and the same files are demos and tests.
//
// It knows the UpgradeConfig by its YAML alone, as a user does, and nothing of how the operator works.
package scenario

import (
	"encoding/json"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// Scenario is one story. Durations in it are real ones, but for those of the cluster's played parts, which are divided
// by the cluster's speed.
type Scenario struct {
	// Name is the file's name without its extension.
	Name string `json:"name"`
	// Description says in a sentence what happens.
	Description string `json:"description"`
	// Binary restricts the scenario to a dev cluster with the operator's program: it needs parts that virtual
	// time does not have, such as processes, permissions, leader election, or a real Prometheus.
	Binary bool `json:"binary,omitempty"`
	// Cluster is what the cluster is like.
	Cluster devcluster.Spec `json:"cluster"`
	// Objects are applied before the operator is started. Deployments among them are awaited.
	Objects []map[string]any `json:"objects,omitempty"`
	// Operator is how the operator is run.
	Operator Operator `json:"operator"`
	// UpgradeConfigs are applied, in this order, when the operator is ready. None means one to the highest release.
	UpgradeConfigs []UpgradeConfig `json:"upgradeConfigs,omitempty"`
	// Rules are what happens on the way.
	Rules []Rule `json:"rules,omitempty"`
	// Expect is how it ends. Nothing means that all UpgradeConfigs are Upgraded.
	Expect Expect `json:"expect"`
}

// Operator is how the operator is run.
type Operator struct {
	// Config is the operator's configuration file, of which apiVersion and kind may be left out. Unless it says otherwise,
	// alerts are checked and silenced if the cluster has a monitoring, and the cluster's receiver is told by the webhook. In
	// its texts, ${PROMETHEUS_URL}, ${ALERTMANAGER_URL} and ${RECEIVER_URL} stand for where these are.
	Config map[string]any `json:"config,omitempty"`
	// Replicas is how many are run, 1 by default. Several elect a leader.
	Replicas int `json:"replicas,omitempty"`
	// Stopped leaves the start to a rule.
	Stopped bool `json:"stopped,omitempty"`
}

// UpgradeConfig is one object of that kind, in the operator's namespace.
type UpgradeConfig struct {
	// Name is the object's name, "example-upgrade-config" by default.
	Name string `json:"name,omitempty"`
	// Type is spec.type, "OSD" by default.
	Type string `json:"type,omitempty"`
	// UpgradeAt is spec.upgradeAt, as an offset from the moment at which the object is applied, such as "+5s" or
	// "-1h"; "+0s" by default.
	UpgradeAt Offset `json:"upgradeAt,omitempty"`
	// Version is spec.desired.version, the highest release by default.
	Version string `json:"version,omitempty"`
	// Channel is spec.desired.channel, the cluster's by default.
	Channel string `json:"channel,omitempty"`
	// Spec is merged over the spec that is made of the above.
	Spec map[string]any `json:"spec,omitempty"`
}

// Object names objects of a kind. Three kinds are none of the API server's, and can be looked at, but not changed: Alert
// and Silence, as Alertmanager's API shows them, and CloudEvent, as the cluster's receiver got it. An Alert has the name
// and the namespace that its labels say.
type Object struct {
	// APIVersion may be left out for the kinds of OpenShift, Kubernetes and ours that upgrades deal with.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	// Namespace is the object's; empty means any, or none if the kind has none.
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's; empty means any.
	Name string `json:"name,omitempty"`
}

// Rule is something that happens on the way.
type Rule struct {
	// Name says what happens.
	Name string `json:"name"`
	// For names the objects to look at. None means that the rule applies when the UpgradeConfigs have been applied.
	For *Object `json:"for,omitempty"`
	// When is a CEL expression over "object" (and "now", the time). The rule applies each time that it becomes true of
	// an object. None means as soon as the object exists. What is missing in the object makes it false.
	When string `json:"when,omitempty"`
	// After is how long to wait then.
	After timescale.Duration `json:"after,omitempty"`
	// Do is what happens, one after the other.
	Do []Action `json:"do"`
	// Times is how often the rule applies, 1 by default. A rule about time alone applies again as soon as all is done.
	Times int `json:"times,omitempty"`
}

// Action is one thing that happens. Exactly one field is set.
type Action struct {
	// Wait does nothing for a while.
	Wait timescale.Duration `json:"wait,omitempty"`
	// Patch changes an object, or its status.
	Patch *Patch `json:"patch,omitempty"`
	// Apply creates an object or changes it, by server-side apply.
	Apply map[string]any `json:"apply,omitempty"`
	// Delete deletes an object; the one that the rule applies to, if none is named.
	Delete *Object `json:"delete,omitempty"`
	// Release adds a release to those that exist, or replaces the one of that version.
	Release *updategraph.Release `json:"release,omitempty"`
	// Node pulls a node's plug, puts it back, breaks or repairs it, or changes how long its reboots take.
	Node *Node `json:"node,omitempty"`
	// Operator stops, starts, kills or restarts (kill and start) all replicas; killLeader kills the one that leads.
	Operator string `json:"operator,omitempty"`
	// Configure replaces the operator's configuration file, as Config of the operator, and may be wrong. The operator reads
	// it every ten seconds.
	Configure map[string]any `json:"configure,omitempty"`
	// APIServer stops, starts, or kills the API server. Data and address are kept.
	APIServer string `json:"apiServer,omitempty"`
	// Etcd stops, starts, or kills etcd. Data and address are kept.
	Etcd string `json:"etcd,omitempty"`
	// Fire has an alert fire.
	Fire *monitoring.Alert `json:"fire,omitempty"`
	// Resolve ends all alerts of that name.
	Resolve string `json:"resolve,omitempty"`
	// Prometheus stops or starts Prometheus.
	Prometheus string `json:"prometheus,omitempty"`
	// Alertmanager stops or starts Alertmanager.
	Alertmanager string `json:"alertmanager,omitempty"`
	// Receiver stops or starts the receiver of the operator's webhook.
	Receiver string `json:"receiver,omitempty"`
	// Check fails the scenario unless the statement holds at that moment.
	Check *Statement `json:"check,omitempty"`
	// Until waits until the statement holds.
	Until *Statement `json:"until,omitempty"`
}

// Patch is a JSON merge patch.
type Patch struct {
	// For names the object; the one that the rule applies to, if none is named.
	For *Object `json:"for,omitempty"`
	// With is the patch.
	With map[string]any `json:"with"`
	// Status patches the object's status instead of the rest of it.
	Status bool `json:"status,omitempty"`
	// Conditions are status conditions to set by their type, as in "Degraded: True/NoQuorum: it has no quorum".
	Conditions map[string]string `json:"conditions,omitempty"`
}

// Node is what happens to a node.
type Node struct {
	machineconfig.Node `json:",inline"`
	// Down pulls the plug, or puts it back.
	Down *bool `json:"down,omitempty"`
}

// Expect is how a story ends.
type Expect struct {
	// Within is how long all of it may take, from the moment at which the UpgradeConfigs are applied; 3m by default.
	Within timescale.Duration `json:"within,omitempty"`
	// StableFor is for how long it must stay so then.
	StableFor timescale.Duration `json:"stableFor,omitempty"`
	// UpgradeConfigs are what becomes of them.
	UpgradeConfigs []ExpectedUpgradeConfig `json:"upgradeConfigs,omitempty"`
	// ClusterVersion is what becomes of the cluster's version.
	ClusterVersion *ExpectedVersion `json:"clusterVersion,omitempty"`
	// Notifications are the types of CloudEvents that the receiver got, without what all types begin with, as in [started,
	// completed]: of each type that is named exactly those, in this order. Others may be in between.
	Notifications []string `json:"notifications,omitempty"`
	// Finally are statements that hold in the end.
	Finally []Statement `json:"finally,omitempty"`
	// Eventually are statements that held at some time, of the same object.
	Eventually []Statement `json:"eventually,omitempty"`
	// Never are statements that held at no time.
	Never []Statement `json:"never,omitempty"`
}

// ExpectedUpgradeConfig is what becomes of one.
type ExpectedUpgradeConfig struct {
	// Name is the object's name, "example-upgrade-config" by default.
	Name string `json:"name,omitempty"`
	// Gone means that it does not exist any more.
	Gone bool `json:"gone,omitempty"`
	// Phase is the phase of the newest history element; "Upgraded" by default.
	Phase string `json:"phase,omitempty"`
	// Conditions are the top-level ones by their type, as in "True" or "False/WindowMissed".
	Conditions map[string]string `json:"conditions,omitempty"`
	// Steps are the conditions of the newest history element by their type, likewise.
	Steps map[string]string `json:"steps,omitempty"`
}

// ExpectedVersion is what becomes of the cluster's version.
type ExpectedVersion struct {
	// Version is that of the newest history element.
	Version string `json:"version,omitempty"`
	// State is its state; "Completed" by default.
	State string `json:"state,omitempty"`
	// Requests is how often spec.desiredUpdate was set to something else than before. Taking it back does not count.
	Requests *int `json:"requests,omitempty"`
	// DesiredUpdate is the version in spec.desiredUpdate in the end, "none" if there must not be any.
	DesiredUpdate string `json:"desiredUpdate,omitempty"`
}

// Statement is something that holds of an object, or does not.
type Statement struct {
	// For names the objects. Of several, one is enough.
	For Object `json:"for"`
	// That is a CEL expression over "object" (and "now", the time). What is missing in the object makes it false.
	That string `json:"that"`
}

// What the words "all by default" above mean.
const (
	defaultName   = "example-upgrade-config"
	defaultType   = "OSD"
	phaseUpgraded = "Upgraded"
	completed     = "Completed"
)

var _ json.Unmarshaler = (*Offset)(nil)
