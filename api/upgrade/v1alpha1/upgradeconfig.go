// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// Finalizer is on an UpgradeConfig while an attempt of its upgrade is in progress, from before the first
// step until its result is recorded and published.
const Finalizer = "upgrade.managed.openshift.io/upgrade-in-progress"

// HoldAnnotation on the ClusterVersion holds all upgrades of the cluster, of any kind, before their commit.
// Its value is a human-readable reason.
const HoldAnnotation = "upgrade.managed.openshift.io/hold"

// Annotations for user requests on an UpgradeConfig whose spec is owned by Git or another program. The
// values of RetryAnnotation and RunNowAnnotation are tokens: any new value is a new request, and the status
// reports the result.
const (
	// PauseAnnotation holds the upgrade before it commences, in the same way as spec.paused. Its value is a
	// human-readable reason.
	PauseAnnotation = "upgrade.managed.openshift.io/pause"
	// RetryAnnotation starts another attempt of a failed upgrade. Its window starts immediately.
	RetryAnnotation = "upgrade.managed.openshift.io/retry"
	// RunNowAnnotation immediately starts an upgrade that has not started or that has failed.
	RunNowAnnotation = "upgrade.managed.openshift.io/run-now"
)

// AllowDeletionAnnotation on an upgrade object permits its deletion between the commit and the end of the
// upgrade. Nothing supervises the upgrade after the deletion, so an admission policy requires this
// annotation. Its value is a human-readable reason.
const AllowDeletionAnnotation = "upgrade.managed.openshift.io/allow-deletion"

// Condition types of an UpgradeConfig. See package history.
const (
	ConditionAccepted       = history.ConditionAccepted
	ConditionProgressing    = history.ConditionProgressing
	ConditionSucceeded      = history.ConditionSucceeded
	ConditionSlow           = history.ConditionSlow
	ConditionReady          = history.ConditionReady
	ConditionReconciling    = history.ConditionReconciling
	ConditionStalled        = history.ConditionStalled
	ConditionPreCheckPassed = history.ConditionPreCheckPassed
	ConditionDegraded       = history.ConditionDegraded

	// ConditionApproved reports whether the upgrade requested by the current generation of the spec is
	// approved. It is written by another client.
	ConditionApproved = "Approved"
)

// UpgradeConfig requests an upgrade of this cluster: the version, the time, and the runbook.
// Deleting it before the upgrade has commenced cancels the upgrade.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradeconfigs,shortName=upgrade
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.desired.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.history[0].phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Progressing")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Commenced",type=date,JSONPath=`.status.history[0].commenceTime`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Upgrade At",type=string,priority=1,JSONPath=`.spec.upgradeAt`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.type`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.history) || !oldSelf.status.history.exists(h, has(h.startTime) && !has(h.completeTime)) || (self.spec.type == oldSelf.spec.type && self.spec.upgradeAt == oldSelf.spec.upgradeAt && self.spec.desired.version == oldSelf.spec.desired.version && (has(self.spec.capacityReservation) == has(oldSelf.spec.capacityReservation)) && (!has(self.spec.capacityReservation) || self.spec.capacityReservation == oldSelf.spec.capacityReservation))",fieldPath=".spec",message="the upgrade is in progress: only paused, PDBForceDrainTimeout, and, until it has commenced, desired.channel, desired.image, and desired.acceptedRisks may change; to cancel it before it has commenced, delete this UpgradeConfig"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.history) || !oldSelf.status.history.exists(h, has(h.commenceTime) && !has(h.completeTime)) || self.spec.desired == oldSelf.spec.desired",fieldPath=".spec.desired",message="the upgrade has commenced: desired cannot change until it is finished"
type UpgradeConfig struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the requested upgrade.
	//
	// +required
	Spec UpgradeConfigSpec `json:"spec,omitzero"`

	// status reports what the operator observed and did.
	//
	// +optional
	Status UpgradeConfigStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator then observes the cluster.
}

// UpgradeConfigSpec defines a requested upgrade.
type UpgradeConfigSpec struct {
	// type is the cluster upgrader, which determines the runbook, for example OSD. An unknown type is
	// reported in the condition Accepted.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type,omitempty"`

	// upgradeAt is the earliest time (RFC 3339) when the upgrade may commence, for example
	// 2020-05-01T12:00:00Z. It must commence within the window that starts at this time (30 minutes by
	// default); otherwise it fails. Changing the time after a failure starts another attempt.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$')",message="must be a date and time with a zone as in RFC 3339, for example 2020-05-01T12:00:00Z"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^.{4}-(02-3|(04|06|09|11)-31)') && (!self.matches('^[12][0-9]{3}-02-29') || (timestamp(self.substring(0, 4) + '-03-01T00:00:00Z') - duration('24h')).getDate() == 29)",message="must be a day that its month has, for example 2020-05-01T12:00:00Z"
	UpgradeAt string `json:"upgradeAt,omitempty"`

	// PDBForceDrainTimeout is how many minutes a PodDisruptionBudget may block the drain of a node before
	// the drain is forced, for example 120. With 0, the drain is forced as soon as it starts. It may be
	// changed during the upgrade.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 525600",message="must be a number of minutes from 0 to 525600, which is a year, for example 120"
	PDBForceDrainTimeout *int32 `json:"PDBForceDrainTimeout,omitempty"` //nolint:kubeapilinter // The API specifies the name.

	// desired is the requested release.
	//
	// +required
	Desired Update `json:"desired,omitzero"`

	// capacityReservation adds a node to each worker MachineSet for the duration of the upgrade.
	//
	// +optional
	CapacityReservation *bool `json:"capacityReservation,omitempty"` //nolint:kubeapilinter // The API specifies name and type.

	// paused holds the upgrade before it commences. Its window still ends. Once the upgrade has commenced,
	// paused has no effect.
	//
	// +optional
	Paused *bool `json:"paused,omitempty"` //nolint:kubeapilinter // The API specifies name and type.
}

// Update is a release and the channel that offers it.
type Update struct {
	// version is the release to upgrade to, for example 4.4.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",message="must be a semantic version without a leading v, for example 4.4.6"
	Version string `json:"version,omitempty"`

	// channel is the update channel that offers the version, for example fast-4.4. It may be changed until
	// the upgrade has commenced.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$')",message="must be the name of a channel, for example fast-4.4"
	Channel string `json:"channel,omitempty"`

	// image is the pull spec of the release by digest. If it is set, the offered release must have this
	// digest. It may be changed until the upgrade has commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^@ ]+@sha256:[0-9a-f]{64}$')",message="must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits"
	Image string `json:"image,omitempty"`

	// acceptedRisks lists the names of accepted risks of a conditional update. A conditional update is
	// installed only if all its risks are listed. It may be changed until the upgrade has commenced.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	AcceptedRisks []string `json:"acceptedRisks,omitempty"`
}

// UpgradeConfigStatus reports what the operator observed and did.
type UpgradeConfigStatus struct {
	// conditions summarize the upgrade: Accepted, Progressing, Succeeded, Slow, Ready, Reconciling, and
	// Stalled. PreCheckPassed is present before the upgrade, and Degraded if the operator is degraded.
	// Other conditions are removed.
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

	// nextTime is when the upgrade will next change on its own: it starts, its window closes, or its
	// current step times out.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// retry is the result of the latest request for another attempt by the annotation
	// upgrade.managed.openshift.io/retry.
	//
	// +optional
	Retry *StartStatus `json:"retry,omitempty"`

	// runNow is the result of the latest request to start the upgrade immediately by the annotation
	// upgrade.managed.openshift.io/run-now.
	//
	// +optional
	RunNow *StartStatus `json:"runNow,omitempty"`

	// history contains one entry per version: first the version requested by the spec, then the others,
	// newest first.
	//
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	History []history.Record `json:"history,omitempty"`

	// replacedAttempts contains the records of failed attempts that a retry has replaced in history, newest
	// first. A record is kept until the retry has started and the result of the failed attempt has been
	// published. Publishing is retried for 24 hours. If the retry is undone before it starts, the record
	// returns to history.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=3
	ReplacedAttempts []history.Record `json:"replacedAttempts,omitempty"`
}

// StartStatus is the result of a request to start the upgrade.
//
// +kubebuilder:validation:MinProperties=0
type StartStatus struct {
	// token is the value of the annotation that was handled, or its SHA-256 hash if it is longer than 64
	// bytes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Token string `json:"token,omitempty"`

	// startTime is the earliest time when the upgrade may commence due to the request, instead of
	// spec.upgradeAt. It is absent if the request has no effect.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// upgradeAt is the value of spec.upgradeAt that startTime replaces. If spec.upgradeAt changes,
	// startTime no longer applies.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UpgradeAt string `json:"upgradeAt,omitempty"`

	// message explains why the request has no effect.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// UpgradeConfigList is a list of UpgradeConfigs.
//
// +kubebuilder:object:root=true
type UpgradeConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpgradeConfigs.
	Items []UpgradeConfig `json:"items"`
}
