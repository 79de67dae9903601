// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Finalizer is on an UpgradeConfig while an attempt at its upgrade is under
// way: from before the first step until its end was recorded and told.
const Finalizer = "upgrade.managed.openshift.io/upgrade-under-way"

// The types of the conditions in the status of an UpgradeConfig.
const (
	// ConditionAccepted says whether the upgrade may run: its version and type
	// are valid and no other upgrade is under way.
	ConditionAccepted = "Accepted"
	// ConditionProgressing says whether a step is being taken; its reason names it.
	ConditionProgressing = "Progressing"
	// ConditionSucceeded says how the upgrade ended. It is absent before.
	ConditionSucceeded = "Succeeded"
	// ConditionStalled says that a step takes longer than it should.
	ConditionStalled = "Stalled"
	// ConditionPreCheckPassed says, some time before the upgrade begins, whether
	// anything would be in its way. It is absent at other times.
	ConditionPreCheckPassed = "EarlyCheckPassed"
	// ConditionDegraded says that the operator works by another configuration
	// than the one that is written, which has an error. It is absent if not.
	ConditionDegraded = "Degraded"
)

// UpgradeConfig says to which version this cluster is upgraded, when, and by
// which runbook. Deleting it before the upgrade has commenced cancels the upgrade.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradeconfigs,shortName=upgrade
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.desired.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.history[0].phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Progressing")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:printcolumn:name="Upgrade At",type=string,priority=1,JSONPath=`.spec.upgradeAt`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.type`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.history) || !oldSelf.status.history.exists(h, has(h.startTime) && !has(h.completeTime)) || (self.spec.type == oldSelf.spec.type && self.spec.upgradeAt == oldSelf.spec.upgradeAt && self.spec.desired == oldSelf.spec.desired && (has(self.spec.capacityReservation) == has(oldSelf.spec.capacityReservation)) && (!has(self.spec.capacityReservation) || self.spec.capacityReservation == oldSelf.spec.capacityReservation))",fieldPath=".spec",message="the upgrade is under way: only paused and PDBForceDrainTimeout may change now; to cancel it before it has commenced, delete this UpgradeConfig"
type UpgradeConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is asked for.
	//
	// +required
	Spec UpgradeConfigSpec `json:"spec,omitzero"`

	// status is what was observed and done.
	//
	// +optional
	Status UpgradeConfigStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator then finds out anew.
}

// UpgradeConfigSpec is what is asked for.
type UpgradeConfigSpec struct {
	// type names the cluster upgrader, that is the runbook, that carries the
	// upgrade out, e.g. OSD. A type that the operator does not know is shown in
	// the condition Accepted.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type,omitempty"`

	// upgradeAt is the time from which the upgrade may commence (RFC 3339), for
	// example 2020-05-01T12:00:00Z. It commences within the window that begins
	// then (30 minutes unless configured otherwise), or not at all.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$')",message="must be a date and time with a zone as in RFC 3339, for example 2020-05-01T12:00:00Z"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^.{4}-(02-3|(04|06|09|11)-31)') && (!self.matches('^[12][0-9]{3}-02-29') || (timestamp(self.substring(0, 4) + '-03-01T00:00:00Z') - duration('24h')).getDate() == 29)",message="must be a day that its month has, for example 2020-05-01T12:00:00Z"
	UpgradeAt string `json:"upgradeAt,omitempty"`

	// PDBForceDrainTimeout is for how many minutes the drain of a node may be
	// blocked by a PodDisruptionBudget before it is forced, e.g. 120. With 0 it
	// is forced as soon as it begins. It may change while the upgrade is under way.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 0 && self <= 525600",message="must be a number of minutes from 0 to 525600, which is a year, for example 120"
	PDBForceDrainTimeout *int32 `json:"PDBForceDrainTimeout,omitempty"` //nolint:kubeapilinter // The field's name is given.

	// desired is the release that is asked for.
	//
	// +required
	Desired Update `json:"desired,omitzero"`

	// capacityReservation adds a node to each worker MachineSet for the time of the upgrade.
	//
	// +optional
	CapacityReservation *bool `json:"capacityReservation,omitempty"` //nolint:kubeapilinter // The field's name and type are given.

	// paused holds the upgrade before it commences; its window goes on. Once
	// the upgrade has commenced it is shown, and has no effect.
	//
	// +optional
	Paused *bool `json:"paused,omitempty"` //nolint:kubeapilinter // The field's name and type are given.
}

// Update is a release, and the channel that offers it.
type Update struct {
	// version is the release to upgrade to, e.g. 4.4.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",message="must be a semantic version without a leading v, for example 4.4.6"
	Version string `json:"version,omitempty"`

	// channel is the update channel that offers the version, e.g. fast-4.4.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Channel string `json:"channel,omitempty"`

	// image is the pull spec of the release by digest, alongside the version.
	// If it is given, the release that is offered must be this one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^@ ]+@sha256:[0-9a-f]{64}$')",message="must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits"
	Image string `json:"image,omitempty"`

	// acceptedRisks names the risks of a conditional update that are accepted.
	// A release that is offered only conditionally is taken only if all its
	// risks are named here.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	AcceptedRisks []string `json:"acceptedRisks,omitempty"`
}

// UpgradeConfigStatus is what was observed and done.
type UpgradeConfigStatus struct {
	// conditions sum up the upgrade: Accepted, Progressing, Succeeded, Stalled;
	// before it, EarlyCheckPassed; and Degraded if the operator is.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// nextTime is when the next thing will happen on its own: the upgrade
	// begins, its window closes, or a step is given up.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// history is what was done, newest first, one element for each version.
	//
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	History []history.Record `json:"history,omitempty"`
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
