// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// ManagedClustersUpgrade upgrades a fleet of Open Cluster Management clusters selected by Placements or by
// a selector. Canaries are upgraded first, then the other clusters in groups, a limited number at a time.
// Upgrades are never rolled back. Each cluster has a ClusterUpgradeRun in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=managedclustersupgrades,shortName=mcu,categories=fleet
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.clusterVersion.version`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.clustersSummery.total`
// +kubebuilder:printcolumn:name="Complete",type=integer,JSONPath=`.status.clustersSummery.complete`
// +kubebuilder:printcolumn:name="In Progress",type=integer,JSONPath=`.status.clustersSummery.partialUpgrade`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.clustersSummery.failed`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.clustersSummery.pending`
// +kubebuilder:printcolumn:name="Admitting",type=string,JSONPath=`.status.conditions[?(@.type=="Admitting")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Admitting")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.clusterVersion) == has(oldSelf.spec.clusterVersion) && (!has(self.spec.clusterVersion) || self.spec.clusterVersion == oldSelf.spec.clusterVersion))",fieldPath=".spec.clusterVersion",message="cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for another release, after cancelling this one if clusters of it are pending"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.upgradeConfig) == has(oldSelf.spec.upgradeConfig) && (!has(self.spec.upgradeConfig) || self.spec.upgradeConfig == oldSelf.spec.upgradeConfig))",fieldPath=".spec.upgradeConfig",message="cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for another runbook, after cancelling this one if clusters of it are pending"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.ocpOperators) == has(oldSelf.spec.ocpOperators) && (!has(self.spec.ocpOperators) || (has(self.spec.ocpOperators.approveAllUpgrades) == has(oldSelf.spec.ocpOperators.approveAllUpgrades) && (!has(self.spec.ocpOperators.approveAllUpgrades) || self.spec.ocpOperators.approveAllUpgrades == oldSelf.spec.ocpOperators.approveAllUpgrades) && has(self.spec.ocpOperators.include) == has(oldSelf.spec.ocpOperators.include) && (!has(self.spec.ocpOperators.include) || (size(self.spec.ocpOperators.include) == size(oldSelf.spec.ocpOperators.include) && self.spec.ocpOperators.include.all(i, oldSelf.spec.ocpOperators.include.exists(o, o.name == i.name && o.__namespace__ == i.__namespace__)))) && has(self.spec.ocpOperators.exclude) == has(oldSelf.spec.ocpOperators.exclude) && (!has(self.spec.ocpOperators.exclude) || (size(self.spec.ocpOperators.exclude) == size(oldSelf.spec.ocpOperators.exclude) && self.spec.ocpOperators.exclude.all(i, oldSelf.spec.ocpOperators.exclude.exists(o, o.name == i.name && o.__namespace__ == i.__namespace__)))))))",fieldPath=".spec.ocpOperators",message="cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for other operators, after cancelling this one if clusters of it are pending"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.preUpgradeAction) == has(oldSelf.spec.preUpgradeAction) && (!has(self.spec.preUpgradeAction) || self.spec.preUpgradeAction == oldSelf.spec.preUpgradeAction))",fieldPath=".spec.preUpgradeAction",message="cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for another action, after cancelling this one if clusters of it are pending"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.startTime) || (has(self.spec.postUpgradeAction) == has(oldSelf.spec.postUpgradeAction) && (!has(self.spec.postUpgradeAction) || self.spec.postUpgradeAction == oldSelf.spec.postUpgradeAction))",fieldPath=".spec.postUpgradeAction",message="cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for another action, after cancelling this one if clusters of it are pending"
type ManagedClustersUpgrade struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the upgrade of the fleet.
	//
	// +required
	Spec ManagedClustersUpgradeSpec `json:"spec,omitzero"` //nolint:kubeapilinter // Its rules ask for members.

	// status reports what the hub observed and did.
	//
	// +optional
	Status ManagedClustersUpgradeStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the hub observes the fleet again.
}

// ManagedClustersUpgradeSpec defines the upgrade of a fleet. clusterVersion, upgradeConfig, ocpOperators,
// and the actions are immutable once the first cluster is admitted.
//
// +kubebuilder:validation:XValidation:rule="(has(self.placement) && self.placement.size() > 0) || has(self.clusterSelector)",message="set placement or clusterSelector to select managed clusters; clusterSelector: {} selects all clusters of the cluster sets that are bound to the namespace"
// +kubebuilder:validation:XValidation:rule="has(self.clusterVersion) || has(self.ocpOperators) || has(self.preUpgradeAction) || has(self.postUpgradeAction)",message="set clusterVersion, ocpOperators, or an action: there is nothing to upgrade"
// +kubebuilder:validation:XValidation:rule="!has(self.upgradeConfig) || (has(self.clusterVersion) && has(self.clusterVersion.version) && self.clusterVersion.version.size() > 0 && has(self.clusterVersion.channel) && self.clusterVersion.channel.size() > 0)",fieldPath=".upgradeConfig",message="needs clusterVersion.version and clusterVersion.channel, from which the UpgradeConfig of each cluster is made"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cancelled) || !oldSelf.cancelled || (has(self.cancelled) && self.cancelled)",message="cancelled cannot be undone: create another ManagedClustersUpgrade"
// +kubebuilder:validation:XValidation:rule="!has(self.claimsOnly) || !self.claimsOnly || (has(self.dryRun) && self.dryRun)",fieldPath=".claimsOnly",message="needs dryRun: true"
type ManagedClustersUpgradeSpec struct {
	// placement lists Placements whose decisions select managed clusters, in addition to the clusters
	// selected by clusterSelector.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Placement []PlacementReference `json:"placement,omitempty"`

	// clusterSelector selects managed clusters in the cluster sets bound to the namespace.
	//
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// clusterVersion is the target release. If it is not set, only operators are upgraded and actions run.
	//
	// +optional
	ClusterVersion *ClusterVersionSpec `json:"clusterVersion,omitempty"` //nolint:kubeapilinter // Its rules ask for a version or an image.

	// ocpOperators selects the operators whose upgrades are approved on each cluster after the platform
	// upgrade. It applies only to Subscriptions with manual approval.
	//
	// +optional
	OCPOperators *OCPOperators `json:"ocpOperators,omitempty"`

	// upgradeStrategy defines the canaries, the number of concurrent upgrades, and the timeouts.
	//
	// +optional
	// +default={"rolloutType": "Progressive"}
	UpgradeStrategy UpgradeStrategy `json:"upgradeStrategy,omitzero"` //nolint:kubeapilinter // The default of the schema fills it.

	// preUpgradeAction is an action that must be available on a cluster before its upgrade is requested.
	//
	// +optional
	PreUpgradeAction *UpgradeAction `json:"preUpgradeAction,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// postUpgradeAction is an action that is applied to a cluster after its upgrade. If the action becomes
	// degraded, the cluster fails.
	//
	// +optional
	PostUpgradeAction *UpgradeAction `json:"postUpgradeAction,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// paused stops the admission of clusters and holds upgrades that are not delivered yet. It defaults to
	// false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"` //nolint:kubeapilinter // The design specifies name and type.

	// cancelled permanently stops the admission of clusters and withdraws upgrades that are not delivered
	// yet. Upgrades already delivered continue. It defaults to false and cannot be undone.
	//
	// +optional
	Cancelled bool `json:"cancelled,omitempty"` //nolint:kubeapilinter // The design specifies name and type.

	// attempt is the number of the attempt. Raising it retries failed clusters and resumes admission after
	// a stop. It defaults to 1.
	//
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="cannot fall: raise it to retry the clusters that failed"
	Attempt int32 `json:"attempt,omitempty"`

	// dryRun checks all clusters without upgrading any. Objects written to the clusters for the check are
	// removed afterwards. It defaults to false.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"` //nolint:kubeapilinter // The design specifies name and type.

	// claimsOnly restricts a dry run to the claims of the clusters; it then writes nothing to them. It
	// defaults to false.
	//
	// +optional
	ClaimsOnly bool `json:"claimsOnly,omitempty"` //nolint:kubeapilinter // The design specifies name and type.

	// dependsOn lists ManagedClustersUpgrades in the same namespace that must be complete first.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	DependsOn []Dependency `json:"dependsOn,omitempty"`

	// lateJoiners determines what happens to clusters that are selected after all others are complete.
	// Ignore leaves them alone until the spec changes. Upgrade upgrades them. It defaults to Ignore.
	//
	// +optional
	LateJoiners LateJoiners `json:"lateJoiners,omitempty"`

	// upgradeConfig delivers an UpgradeConfig instead of a ClusterVersion to each cluster, whose Managed
	// Upgrade Operator then performs the upgrade.
	//
	// +optional
	UpgradeConfig *UpgradeConfigTemplate `json:"upgradeConfig,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// LateJoiners determines what happens to clusters that are selected after all others are complete.
//
// +kubebuilder:validation:Enum=Ignore;Upgrade
type LateJoiners string

const (
	// LateJoinersIgnore leaves late joiners alone.
	LateJoinersIgnore LateJoiners = "Ignore"
	// LateJoinersUpgrade upgrades late joiners.
	LateJoinersUpgrade LateJoiners = "Upgrade"
)

// PlacementReference names a Placement.
type PlacementReference struct {
	// name is the name of the Placement.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the Placement. It defaults to the namespace of the
	// ManagedClustersUpgrade. If it is another namespace, the creator needs permission to create
	// managedclustersupgrades there.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"` //nolint:kubeapilinter // Empty means the own namespace.
}

// ClusterSelector selects managed clusters by cluster set and by labels. Both must match.
//
// +kubebuilder:validation:MinProperties=0
type ClusterSelector struct {
	// clusterSets lists ManagedClusterSets that are bound to the namespace. It defaults to all bound sets.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ClusterSets []string `json:"clusterSets,omitempty"`

	LabelSelector `json:",inline"`
}

// ClusterVersionSpec is a release.
//
// +kubebuilder:validation:XValidation:rule="(has(self.version) && self.version.size() > 0) || (has(self.image) && self.image.size() > 0)",message="version or image must be set, for example version: 4.20.6"
type ClusterVersionSpec struct {
	// channel is the update channel, for example stable-4.20. If it is empty, each cluster keeps its
	// channel.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$')",message="must be the name of a channel, for example stable-4.20"
	Channel string `json:"channel,omitempty"` //nolint:kubeapilinter // The printed manifest has empty texts.

	// version is the release to upgrade to, for example 4.20.6.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",message="must be a semantic version without a leading v, for example 4.20.6"
	Version string `json:"version,omitempty"` //nolint:kubeapilinter // The printed manifest has empty texts.

	// upstream is the URL of the update service. If it is empty, each cluster keeps its update service.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^https?://[^/ ]+')",message="must be a URL, for example https://api.openshift.com/api/upgrades_info/v1/graph"
	Upstream string `json:"upstream,omitempty"` //nolint:kubeapilinter // The printed manifest has empty texts.

	// image is the pull spec of the release by digest. If version is also set, the release must have this
	// digest.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.matches('^[^@ ]+@sha256:[0-9a-f]{64}$')",message="must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits"
	Image string `json:"image,omitempty"` //nolint:kubeapilinter // The printed manifest has empty texts.
}

// OCPOperators selects operators managed by the Operator Lifecycle Manager by their Subscriptions.
//
// +kubebuilder:validation:MinProperties=0
// +kubebuilder:validation:XValidation:rule="!has(self.include) || !has(self.exclude) || self.include.all(i, !self.exclude.exists(e, e.name == i.name && e.__namespace__ == i.__namespace__))",message="an operator cannot be both in include and in exclude"
type OCPOperators struct {
	// approveAllUpgrades approves the upgrades of all operators except those in exclude. It defaults to
	// false: only upgrades of the operators in include are approved.
	//
	// +optional
	ApproveAllUpgrades bool `json:"approveAllUpgrades,omitempty"` //nolint:kubeapilinter // The API specifies name and type.

	// include lists the operators whose upgrades are approved. It has no effect if approveAllUpgrades is
	// true.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=namespace
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=100
	Include []OperatorReference `json:"include,omitempty"`

	// exclude lists operators whose upgrades are not approved.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=namespace
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=100
	Exclude []OperatorReference `json:"exclude,omitempty"`
}

// OperatorReference names the Subscription of an operator.
type OperatorReference struct {
	// name is the name of the Subscription.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="must be the name of a Subscription, for example openshift-gitops-operator"
	Name string `json:"name,omitempty"`

	// namespace is the namespace of the Subscription.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be the name of a namespace, for example openshift-operators"
	Namespace string `json:"namespace,omitempty"`
}

// RolloutType determines how clusters are admitted.
//
// +kubebuilder:validation:Enum=All;Progressive;ProgressivePerGroup
type RolloutType string

const (
	// RolloutAll admits as many clusters as maxConcurrency allows, or all at once if it is not set.
	RolloutAll RolloutType = "All"
	// RolloutProgressive fills free slots in group order.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup starts a group only after all earlier groups are finished.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// UpgradeStrategy defines when clusters start and how long they may take.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeStrategy struct {
	// canaryClusters selects the clusters that must be complete before any other cluster starts. The first
	// canary failure stops the rollout.
	//
	// +optional
	CanaryClusters *CanaryClusters `json:"canaryClusters,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// clusterUpgradeTimeout is the maximum duration of the platform upgrade of one cluster. It defaults to
	// 2h.
	//
	// +optional
	// +default="2h"
	ClusterUpgradeTimeout Duration `json:"clusterUpgradeTimeout,omitempty"`

	// maxConcurrency is the maximum number of clusters upgraded at the same time, or a percentage of all
	// clusters except canaries, rounded up. It defaults to 1, or to all clusters if rolloutType is All.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 && int(self) <= 1000000 : string(self).matches('^([1-9][0-9]?|100)%$')",message="must be a number from 1 to 1000000, or a percentage from 1% to 100%"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`

	// operatorsUpgradeTimeout is the maximum duration of the operator upgrades of one cluster. It defaults
	// to 10m.
	//
	// +optional
	// +default="10m"
	OperatorsUpgradeTimeout Duration `json:"operatorsUpgradeTimeout,omitempty"`

	// rolloutType determines how clusters are admitted: Progressive, ProgressivePerGroup, or All. It
	// defaults to Progressive.
	//
	// +optional
	// +default="Progressive"
	RolloutType RolloutType `json:"rolloutType,omitempty"`

	// decisionStrategy divides the clusters selected by clusterSelector into groups. Placements define
	// their own groups.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.groupStrategy) || !has(self.groupStrategy.clustersPerDecisionGroup) || type(self.groupStrategy.clustersPerDecisionGroup) != int || int(self.groupStrategy.clustersPerDecisionGroup) <= 1000000",message="groupStrategy.clustersPerDecisionGroup must be a percentage, or a number up to 1000000"
	DecisionStrategy *ocmv1beta1.DecisionStrategy `json:"decisionStrategy,omitempty"`

	// maxFailures is the number of clusters that may fail, or a percentage of all clusters except canaries,
	// rounded up. With rolloutType ProgressivePerGroup, it applies to each group. Exceeding it stops the
	// rollout. If it is not set, only canary failures stop the rollout.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 1000000 : string(self).matches('^([1-9]?[0-9]|100)%$')",message="must be a number from 0 to 1000000, or a percentage from 0% to 100%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`

	// minSuccessTime is how long an upgraded cluster is observed before it releases its slot. It defaults to 30m
	// for canaries. Other clusters are not observed by default.
	//
	// +optional
	MinSuccessTime Duration `json:"minSuccessTime,omitempty"`

	// applyTimeout is the maximum time for the agent of a cluster to apply the upgrade. It defaults to 30m.
	//
	// +optional
	// +default="30m"
	ApplyTimeout Duration `json:"applyTimeout,omitempty"`

	// actionTimeout is the maximum duration of an action on a cluster. It defaults to 30m.
	//
	// +optional
	// +default="30m"
	ActionTimeout Duration `json:"actionTimeout,omitempty"`

	// failingTimeout is how long the cluster version operator may report Failing before the cluster fails.
	// It defaults to 10m.
	//
	// +optional
	// +default="10m"
	FailingTimeout Duration `json:"failingTimeout,omitempty"`

	// stallTimeout is how long a cluster may make no progress before it is reported as stalled. It defaults
	// to 45m.
	//
	// +optional
	// +default="45m"
	StallTimeout Duration `json:"stallTimeout,omitempty"`

	// windows lists the times when clusters are admitted. Clusters already admitted continue after a window
	// ends. By default, clusters are admitted at any time.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	Windows []AdmissionWindow `json:"windows,omitempty"`
}

// CanaryClusters selects the canaries.
type CanaryClusters struct {
	// clusterSelector selects the canaries among the selected clusters.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="must not be empty: it would make every cluster a canary; set matchLabels or matchExpressions, or remove canaryClusters"
	ClusterSelector LabelSelector `json:"clusterSelector,omitzero"` //nolint:kubeapilinter // A rule rejects the empty selector.
}

// AdmissionWindow is a recurring window for the admission of clusters.
type AdmissionWindow struct {
	// cron defines the start times of the window in the time zone given by location, for example 0 22 * * 2
	// for 22:00 on Tuesdays. Its five fields are minute, hour, day (of the month), month, and day of
	// the week.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *[^ ]+( +[^ ]+){4} *$')",message="must have five fields, separated by spaces: minute, hour, day, month, and weekday, for example 0 22 * * 2; a time zone belongs in location"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *([*?](/[0-5]?[0-9])?|[0-5]?[0-9](-[0-5]?[0-9])?(/[0-5]?[0-9])?)(,([*?](/[0-5]?[0-9])?|[0-5]?[0-9](-[0-5]?[0-9])?(/[0-5]?[0-9])?))* ')",message="the minute (first field) must be *, or a list of minutes from 0 to 59 and ranges of them, with steps of at most 59, for example 0, 0,30, or */15"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *[^ ]+ +([*?](/([01]?[0-9]|2[0-3]))?|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?(/([01]?[0-9]|2[0-3]))?)(,([*?](/([01]?[0-9]|2[0-3]))?|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?(/([01]?[0-9]|2[0-3]))?))* ')",message="the hour (second field) must be *, or a list of hours from 0 to 23 and ranges of them, with steps of at most 23, for example 22 or 20-23"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('^ *[^ ]+ +[^ ]+ +([*?](/([0-2]?[0-9]|30))?|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?(/([0-2]?[0-9]|30))?)(,([*?](/([0-2]?[0-9]|30))?|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?(/([0-2]?[0-9]|30))?))* ')",message="the day of the month (third field) must be *, or a list of days from 1 to 31 and ranges of them, with steps of at most 30, for example 1-7"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('(?i)^ *[^ ]+ +[^ ]+ +[^ ]+ +([*?](/(0?[0-9]|1[01]))?|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?(/(0?[0-9]|1[01]))?)(,([*?](/(0?[0-9]|1[01]))?|(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0?[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?(/(0?[0-9]|1[01]))?))* ')",message="the month (fourth field) must be *, or a list of months from 1 to 12 or JAN to DEC and ranges of them, with steps of at most 11, for example 1-6"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^ *[^ ]+( +[^ ]+){4} *$') || self.matches('(?i)^ *[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +([*?](/0?[0-7])?|(0?[0-7]|sun|mon|tue|wed|thu|fri|sat)(-(0?[0-7]|sun|mon|tue|wed|thu|fri|sat))?(/0?[0-7])?)(,([*?](/0?[0-7])?|(0?[0-7]|sun|mon|tue|wed|thu|fri|sat)(-(0?[0-7]|sun|mon|tue|wed|thu|fri|sat))?(/0?[0-7])?))* *$')",message="the day of the week (fifth field) must be *, or a list of days from 0 to 7 (Sunday is 0 or 7) or SUN to SAT and ranges of them, with steps of at most 7, for example 2 or MON-FRI"
	// +kubebuilder:validation:XValidation:rule="!self.matches('/0+([, ]|$)')",message="a step must be at least 1, for example */15"
	Cron string `json:"cron,omitempty"`

	// isoWeek selects weeks by their ISO 8601 number: @odd, @even, or a list of weeks from 1 to 53, ranges,
	// and steps, for example 7, 10-20, or */4. By default, every week is selected.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@odd|@even|([*]|(0?[1-9]|[1-4][0-9]|5[0-3])(-(0?[1-9]|[1-4][0-9]|5[0-3]))?)(/(0?[1-9]|[1-4][0-9]|5[0-3]))?(,([*]|(0?[1-9]|[1-4][0-9]|5[0-3])(-(0?[1-9]|[1-4][0-9]|5[0-3]))?)(/(0?[1-9]|[1-4][0-9]|5[0-3]))?)*)?$')",message="must be @odd, @even, or a list of weeks from 1 to 53, ranges, and steps, for example 7,10-20,*/4"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[0-9*/,-]+$') || self.split(',').all(i, !i.matches('^[0-9]{1,2}-[0-9]{1,2}(/|$)') || int(i.split('/')[0].split('-')[0]) <= int(i.split('/')[0].split('-')[1]))",message="a range of weeks must not end before it starts; write 50-53,1-2 instead of 50-2"
	ISOWeek *string `json:"isoWeek,omitempty"`

	// location is the time zone of the window, as a name in the IANA time zone database, for example
	// Europe/Zurich. It defaults to UTC.
	//
	// +optional
	// +default="UTC"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$')",message="must be a name of the IANA time zone database, for example Europe/Zurich or UTC; an offset is written as Etc/GMT-1, which is one hour ahead of UTC"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') || timestamp('2027-01-01T00:00:00Z').getHours(self) >= 0",message="must be a name of the IANA time zone database, for example Europe/Zurich or UTC"
	Location string `json:"location,omitempty"`

	// duration is how long the window stays open, for example 4h.
	//
	// +required
	Duration Duration `json:"duration,omitempty"`
}

// UpgradeAction is an action applied to each cluster before or after its upgrade.
//
// +kubebuilder:validation:XValidation:rule="has(self.manifestWork.workload) && has(self.manifestWork.workload.manifests) && self.manifestWork.workload.manifests.size() >= 1 && self.manifestWork.workload.manifests.size() <= 50",fieldPath=".manifestWork",message="workload.manifests must have 1 to 50 manifests"
type UpgradeAction struct {
	// manifestWork is the spec of a ManifestWork. The action is available on a cluster when its Jobs have
	// succeeded, its conditionRules report Complete, and all its other objects exist.
	//
	// +required
	ManifestWork workv1.ManifestWorkSpec `json:"manifestWork,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// Dependency is a ManagedClustersUpgrade that must be complete first.
type Dependency struct {
	// name is the name of a ManagedClustersUpgrade in the same namespace.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// perCluster admits each cluster as soon as the other upgrade is complete on it. It defaults to false:
	// all clusters of the other upgrade must be complete.
	//
	// +optional
	PerCluster bool `json:"perCluster,omitempty"` //nolint:kubeapilinter // The design specifies name and type.
}

// UpgradeConfigTemplate defines the fields of the UpgradeConfigs on the clusters, except for the release.
type UpgradeConfigTemplate struct {
	// type is the cluster upgrader, which determines the runbook, for example OSD.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type,omitempty"`

	// namespace is the namespace watched by the Managed Upgrade Operator of each cluster. It defaults to
	// managed-upgrade-operator.
	//
	// +optional
	// +default="managed-upgrade-operator"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="must be the name of a namespace, for example managed-upgrade-operator"
	Namespace string `json:"namespace,omitempty"`

	// PDBForceDrainTimeout is how many minutes a PodDisruptionBudget may block the drain of a node before
	// the drain is forced, for example 120. With 0, the drain is forced as soon as it starts.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 525600",message="must be a number of minutes from 0 to 525600, which is a year, for example 120"
	PDBForceDrainTimeout *int32 `json:"PDBForceDrainTimeout,omitempty"` //nolint:kubeapilinter // The API of UpgradeConfig specifies the name.

	// capacityReservation adds a node to each worker MachineSet for the duration of the upgrade.
	//
	// +optional
	CapacityReservation *bool `json:"capacityReservation,omitempty"` //nolint:kubeapilinter // The API of UpgradeConfig specifies name and type.
}
