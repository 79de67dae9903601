// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UpgradeJob is one upgrade of this cluster in one maintenance window. UpgradeJobs are created by
// UpgradeConfigs or by users. The spec is immutable. Deleting an UpgradeJob before its upgrade has
// commenced cancels the upgrade.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradejobs,shortName=uj,categories=maintenance
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.desiredVersion.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.history[0].phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.startAfter`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Progressing")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Start Before",type=string,priority=1,JSONPath=`.spec.startBefore`
type UpgradeJob struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the upgrade. It is immutable.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: delete this UpgradeJob, which cancels it if it has not commenced, and create another one; UpgradeJobs of later windows follow their UpgradeConfig"
	Spec UpgradeJobSpec `json:"spec,omitzero"`

	// status reports what the operator observed and did.
	//
	// +optional
	Status UpgradeJobStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// UpgradeJobSpec is one upgrade.
//
// +kubebuilder:validation:XValidation:rule="!self.startAfter.matches('^([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') || !self.startBefore.matches('^([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') || timestamp(self.startAfter) < timestamp(self.startBefore)",fieldPath=".startBefore",message="must be after startAfter, for example one hour later"
type UpgradeJobSpec struct {
	// startAfter is the earliest start time of the upgrade (RFC 3339), for example 2027-03-02T21:00:00Z.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	StartAfter Timestamp `json:"startAfter,omitempty"`

	// startBefore is the time (RFC 3339) by which the upgrade must commence. An upgrade commences when the
	// cluster version operator accepts the version. An upgrade that has not commenced by then is skipped.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	StartBefore Timestamp `json:"startBefore,omitempty"`

	// desiredVersion is the version to upgrade to. If it is not set, the UpgradeJob only runs hooks.
	//
	// +optional
	DesiredVersion DesiredVersion `json:"desiredVersion,omitzero"`

	// desiredVersionCheckAvailability controls whether the upgrade is skipped if the version is not among
	// the available updates at the start. It defaults to true.
	//
	// +optional
	// +default=true
	DesiredVersionCheckAvailability *bool `json:"desiredVersionCheckAvailability,omitempty"` //nolint:kubeapilinter // The field's name and type are given.

	// config configures the upgrade.
	//
	// +optional
	// +default={"upgradeTimeout": "12h"}
	Config UpgradeJobConfig `json:"config,omitzero"`
}

// DesiredVersion is a release.
type DesiredVersion struct {
	// version is the release to upgrade to, for example 4.20.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",message="must be a semantic version without a leading v, for example 4.20.6"
	Version string `json:"version,omitempty"`

	// image is the pull spec of the release by digest. If it is set, the available release must have this
	// digest.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^@ ]+@sha256:[0-9a-f]+$')",message="must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and hexadecimal digits"
	Image string `json:"image,omitempty"`
}

// UpgradeJobConfig configures an upgrade.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPools) || !has(self.upgradeTimeout) || !self.upgradeTimeout.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || self.machineConfigPools.all(p, !has(p.delayUpgrade.delayMin) || !p.delayUpgrade.delayMin.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || duration(p.delayUpgrade.delayMin) < duration(self.upgradeTimeout))",message="each delayUpgrade.delayMin of machineConfigPools must be shorter than upgradeTimeout, which defaults to 12h: the timeout continues while pools wait"
// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPools) || !has(self.upgradeTimeout) || !self.upgradeTimeout.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || self.machineConfigPools.all(p, !has(p.delayUpgrade.startAfter) || !p.delayUpgrade.startAfter.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || duration(p.delayUpgrade.startAfter) < duration(self.upgradeTimeout))",message="each delayUpgrade.startAfter of machineConfigPools must be shorter than upgradeTimeout, which defaults to 12h: the timeout continues while pools wait"
type UpgradeJobConfig struct {
	// upgradeTimeout is the maximum time from startAfter to the end of the upgrade, including the time that
	// pools are delayed. An upgrade that is not complete by then fails. It defaults to 12h.
	//
	// +optional
	// +default="12h"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.matches('[0-9]') || self.matches('[1-9]')",message="must be longer than 0s, for example 2h"
	UpgradeTimeout Duration `json:"upgradeTimeout,omitempty"`

	// preUpgradeHealthChecks must pass before the upgrade commences. If they do not, the upgrade is
	// skipped.
	//
	// +optional
	// +default={"timeout": "30m"}
	PreUpgradeHealthChecks HealthChecks `json:"preUpgradeHealthChecks,omitzero"`

	// postUpgradeHealthChecks must pass after the upgrade. If they do not, the upgrade fails.
	//
	// +optional
	// +default={"timeout": "30m"}
	PostUpgradeHealthChecks HealthChecks `json:"postUpgradeHealthChecks,omitzero"`

	// machineConfigPools delays the update of nodes in some machine config pools. Each pool may be selected
	// by at most one entry. The pool master cannot be selected.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	MachineConfigPools []MachineConfigPoolConfig `json:"machineConfigPools,omitempty"`

	// forceDrainAfter is how long the drain of a node may be blocked before the blocking pods are deleted,
	// for example 2h. With 0s, they are deleted as soon as the drain starts. By default, drains are not
	// forced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	ForceDrainAfter Duration `json:"forceDrainAfter,omitempty"`

	// pauseMachineConfigPoolsOnFailure selects machine config pools that are paused if the upgrade fails
	// after it has commenced. They stay paused until a user unpauses them. By default, no pool is paused.
	//
	// +optional
	PauseMachineConfigPoolsOnFailure *MachineConfigPoolSelector `json:"pauseMachineConfigPoolsOnFailure,omitempty"`
}

// HealthChecks are checks of the cluster. All enabled checks must pass at the same time.
//
// +kubebuilder:validation:MinProperties=1
type HealthChecks struct {
	// timeout is how long to wait for the checks to pass. It defaults to 30m.
	//
	// +optional
	// +default="30m"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:XValidation:rule="!self.matches('[0-9]') || self.matches('[1-9]')",message="must be longer than 0s, for example 30m"
	Timeout Duration `json:"timeout,omitempty"`

	// checkCriticalAlerts requires that no alert with the label severity=critical is firing in any
	// namespace. If it is not set, alerts are checked only if the operator has a source of alerts. If it is
	// true and the operator has no source of alerts, the checks do not pass.
	//
	// +optional
	CheckCriticalAlerts *bool `json:"checkCriticalAlerts,omitempty"` //nolint:kubeapilinter // The field's name and type are given.

	// checkDegradedOperators requires that no ClusterOperator is degraded or unavailable. It defaults to
	// true.
	//
	// +optional
	// +default=true
	CheckDegradedOperators *bool `json:"checkDegradedOperators,omitempty"` //nolint:kubeapilinter // The field's name and type are given.

	// excludeAlerts lists alerts that checkCriticalAlerts ignores.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	ExcludeAlerts []AlertExclusion `json:"excludeAlerts,omitempty"`

	// excludeNamespaces lists namespaces whose alerts checkCriticalAlerts ignores. An asterisk matches any
	// characters.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ExcludeNamespaces []string `json:"excludeNamespaces,omitempty"`

	// excludeOperators lists ClusterOperators that checkDegradedOperators ignores, by name, with or without
	// the prefix openshift-. An asterisk matches any characters. Names that match no ClusterOperator are
	// reported.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ExcludeOperators []string `json:"excludeOperators,omitempty"`

	// customQueries are PromQL queries that must return no samples.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	CustomQueries []CustomQuery `json:"customQueries,omitempty"`

	// objects lists conditions that objects must meet. The operator needs permission to read these objects.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Objects []ObjectCheck `json:"objects,omitempty"`
}

// ObjectCheck is a condition that objects of one kind must meet.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="either name or selector is required"
// +kubebuilder:validation:XValidation:rule="self.apiVersion != 'v1' || self.kind != 'Secret'",message="conditions on Secrets are not evaluated"
type ObjectCheck struct {
	// apiVersion is the API group and version of the objects, for example apps/v1.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the objects, for example Deployment.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace is the namespace of the objects. If it is not set, objects in all namespaces are checked,
	// or the kind is cluster-scoped.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name selects one object. The check does not pass if the object does not exist.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// selector selects up to 500 objects by their labels. The check does not pass if it selects no object.
	// An empty selector selects all objects.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// expr is an expression in the Common Expression Language (CEL) that is true for a healthy object, for
	// example object.status.conditions.exists(c, c.type == 'Available' && c.status == 'True').
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Expr string `json:"expr,omitempty"`
}

// AlertExclusion is an alert to ignore.
type AlertExclusion struct {
	// alertname is the value of the label alertname, for example KubePodCrashLooping. An asterisk
	// matches any characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Alertname string `json:"alertname,omitempty"`
}

// CustomQuery is a query that returns samples if the cluster is not healthy.
type CustomQuery struct {
	// query is a PromQL expression that returns one sample per problem, for example
	// up{job=~"^argocd-.+$",namespace="syn"} != 1.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`
}

// MachineConfigPoolConfig configures the update of the nodes in machine config pools.
type MachineConfigPoolConfig struct {
	MachineConfigPoolSelector `json:",inline"`

	// delayUpgrade delays the update of the nodes: the pools are paused before the upgrade commences and
	// unpaused within the given time.
	//
	// +required
	DelayUpgrade DelayUpgrade `json:"delayUpgrade,omitzero"`
}

// DelayUpgrade is the period, relative to the startAfter of the UpgradeJob, for unpausing machine config
// pools. It is given as delayMin and delayMax or, equivalently, as startAfter and startBefore.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.delayMin) && has(self.delayMax) && !has(self.startAfter) && !has(self.startBefore) || has(self.startAfter) && has(self.startBefore) && !has(self.delayMin) && !has(self.delayMax)",message="set delayMin and delayMax, or startAfter and startBefore, and not both pairs, for example delayMin: 1h and delayMax: 2h"
// +kubebuilder:validation:XValidation:rule="!has(self.delayMin) || !has(self.delayMax) || !self.delayMin.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || !self.delayMax.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || duration(self.delayMin) <= duration(self.delayMax)",fieldPath=".delayMax",message="must not be shorter than delayMin"
// +kubebuilder:validation:XValidation:rule="!has(self.startAfter) || !has(self.startBefore) || !self.startAfter.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || !self.startBefore.matches('^([0-9]{1,5}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[0-9]{1,5}m([0-9]{1,5}s)?|[0-9]{1,5}s)$') || duration(self.startAfter) <= duration(self.startBefore)",fieldPath=".startBefore",message="must not be shorter than startAfter"
type DelayUpgrade struct {
	// delayMin is the minimum time after the UpgradeJob's startAfter before the pools are unpaused, for
	// example 1h. It must be shorter than upgradeTimeout.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	DelayMin Duration `json:"delayMin,omitempty"`

	// delayMax is the maximum time after the UpgradeJob's startAfter until the pools are unpaused, for
	// example 2h. Pools that cannot be unpaused by then stay paused, and the upgrade fails.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	DelayMax Duration `json:"delayMax,omitempty"`

	// startAfter is an alias for delayMin.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	StartAfter Duration `json:"startAfter,omitempty"`

	// startBefore is an alias for delayMax.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	StartBefore Duration `json:"startBefore,omitempty"`
}

// UpgradeJobStatus reports what the operator observed and did.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeJobStatus struct {
	// conditions summarize the upgrade: Accepted, Progressing, Succeeded, Slow, Ready, Reconciling,
	// Stalled, Paused, and Acknowledged. PreCheckPassed is present before the upgrade, and Degraded if the
	// operator is degraded. Other conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nextTime is when the upgrade will next change on its own: it starts, its window closes, a pool is
	// unpaused, or its current step times out.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// machineConfigPools lists the machine config pools that the upgrade delays or has paused.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	MachineConfigPools []MachineConfigPoolStatus `json:"machineConfigPools,omitempty"`

	// retry is the result of the latest request for another attempt.
	//
	// +optional
	Retry *RetryStatus `json:"retry,omitempty"`

	// history contains one entry per attempt, newest first. Its phases include Paused and Skipped.
	//
	// +optional
	// +listType=map
	// +listMapKey=attempt
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=5
	History []history.Record `json:"history,omitempty"`
}

// MachineConfigPoolStatus is the progress of one machine config pool.
type MachineConfigPoolStatus struct {
	// name is the name of the machine config pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// state is a CamelCase word, for example Paused or Completed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`

	// releaseAfter is the earliest time when the pool is unpaused.
	//
	// +optional
	ReleaseAfter *metav1.Time `json:"releaseAfter,omitempty"`
}

// RetryStatus is the result of a request for another attempt.
//
// +kubebuilder:validation:MinProperties=0
type RetryStatus struct {
	// token is the value of the annotation managedupgrade.appuio.io/retry that was handled, or its SHA-256
	// hash if it is longer than 64 bytes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`
}

// UpgradeJobList is a list of UpgradeJobs.
//
// +kubebuilder:object:root=true
type UpgradeJobList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpgradeJobs.
	Items []UpgradeJob `json:"items"`
}
