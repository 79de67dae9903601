// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the progress of an upgrade.
//
// +kubebuilder:validation:Enum=New;Pending;Upgrading;Upgraded;Failed;Unknown;Paused
type Phase string

const (
	// PhaseNew is an upgrade whose gates have not been evaluated yet, because its time is far away.
	PhaseNew Phase = "New"
	// PhasePending is an upgrade that cannot start yet.
	PhasePending Phase = "Pending"
	// PhaseUpgrading is an upgrade whose steps are running.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseUpgraded is an upgrade that is complete.
	PhaseUpgraded Phase = "Upgraded"
	// PhaseFailed is an upgrade that failed, was aborted, or never started.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown is an upgrade whose state cannot be determined.
	PhaseUnknown Phase = "Unknown"
	// PhasePaused is the phase of an upgrade that waits for a time or for a user and has nothing else left to do.
	PhasePaused Phase = "Paused"
	// PhaseSkipped is an upgrade that has not commenced for a reason that is no failure. Only
	// UpgradeJobs have it.
	PhaseSkipped Phase = "Skipped"
)

// Record is the record of the upgrade to one version.
type Record struct {
	// version is the version to which the upgrade leads, for example 4.4.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// phase is the progress of the upgrade.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"` //nolint:kubeapilinter // The API specifies the field; the conditions give the details.

	// attempt is the number of the attempt at this version, from 1. A changed time after a failure
	// starts a new attempt with new conditions.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// upgradeAt is the time that was requested for this attempt.
	//
	// +optional
	UpgradeAt *metav1.Time `json:"upgradeAt,omitempty"`

	// precedingVersion is the version that was installed when the upgrade commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PrecedingVersion string `json:"precedingVersion,omitempty"`

	// precedingChannel is the update channel before the upgrade changed it, so that it can be
	// restored. It is recorded before the channel is changed. Empty means that no channel was set.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=256
	PrecedingChannel *string `json:"precedingChannel,omitempty"`

	// channels are the update channels that this attempt has requested, oldest first. Each is recorded
	// before it is set, so that it is not mistaken for a channel of another client.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=256
	Channels []string `json:"channels,omitempty"`

	// requestTime is when the upgrade was requested from the cluster. It is recorded before the
	// request is made, and removed when the request is withdrawn.
	//
	// +optional
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// requestedImage is the image of the release that was requested from the cluster. Empty means that the
	// request named the version only.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=512
	RequestedImage *string `json:"requestedImage,omitempty"`

	// reason is the CamelCase reason why the attempt has not started yet, or why it ended.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message explains the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`

	// startTime is when the first step started. It is absent until then.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// commenceTime is when the upgrade passed its point of no return: the cluster version operator
	// accepted the version.
	//
	// +optional
	CommenceTime *metav1.Time `json:"commenceTime,omitempty"`

	// completeTime is when the upgrade ended, its cleanup included.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// workerStartTime is when the step that waits for the worker nodes started.
	//
	// +optional
	WorkerStartTime *metav1.Time `json:"workerStartTime,omitempty"`

	// workerCompleteTime is when all worker nodes were upgraded.
	//
	// +optional
	WorkerCompleteTime *metav1.Time `json:"workerCompleteTime,omitempty"`

	// notifiedTime is the time before which all Events about the steps were published. A restarted
	// operator does not publish them again.
	//
	// +optional
	NotifiedTime *metav1.Time `json:"notifiedTime,omitempty"`

	// notifiedMilestones are the milestones that were notified for an earlier object of the same name, which
	// was deleted after the upgrade had commenced. They are not notified again.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	NotifiedMilestones []Milestone `json:"notifiedMilestones,omitempty"`

	// conditions are the steps that have started, in the order of the runbook.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []StepCondition `json:"conditions,omitempty"` //nolint:kubeapilinter // A metav1.Condition lacks some of the times.

	// previousAttempts are the earlier attempts at this version, newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=3
	PreviousAttempts []PreviousAttempt `json:"previousAttempts,omitempty"`
}

// StepCondition is the state of one step.
//
// A step with a completeTime is finished. Its status is True if it is done or was skipped, and
// False if it failed. A step without a completeTime is running. Its status is False while it waits,
// and Unknown while its state cannot be determined.
type StepCondition struct {
	// type is the name of the step, which states what holds once it is done, for example
	// ControlPlaneUpgraded.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type,omitempty"`

	// status is True once the step is done or skipped, False while it waits or if it failed, and
	// Unknown while that cannot be determined.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// reason is the CamelCase reason for the status.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message explains the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// milestone says what the step means for the upgrade as a whole, for example Commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Milestone Milestone `json:"milestone,omitempty"`

	// lastAnswer is the last reason and message before the state of the step became unknown.
	//
	// +optional
	LastAnswer *StepAnswer `json:"lastAnswer,omitempty"`

	// items are named sub-results of the step, such as the hooks that it runs.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Items []StepItem `json:"items,omitempty"`

	// reasonTime is when the reason last changed while the step waited. It is absent while the first
	// reason applies. It stays the same while the state of the step is unknown.
	//
	// +optional
	ReasonTime *metav1.Time `json:"reasonTime,omitempty"`

	// progressTime is when what the step waits for last changed, for example because another node was
	// updated. It is absent while nothing has changed since the step started. A step is slow that has
	// not progressed for a time.
	//
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`

	// fingerprint identifies what the objects report that the step waits for: if it differs from the last
	// one, the step has progressed. It is absent if the step progresses whenever its message changes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fingerprint string `json:"fingerprint,omitempty"`

	// startTime is when the step started.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completeTime is when the step finished.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// lastProbeTime is when the state of the step was last determined. While a step waits, it is
	// updated at least every five minutes.
	//
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// lastTransitionTime is when the status last changed.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Milestone says what a step means for the upgrade as a whole.
type Milestone string

// StepAnswer is a reason and a message of a step.
//
// +kubebuilder:validation:MinProperties=0
type StepAnswer struct {
	// reason is a CamelCase word.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message explains it to people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// StepItem is a named sub-result of a step.
type StepItem struct {
	// name is unique among the items of the step.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// status is a CamelCase word, for example Running, Succeeded, or Failed.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Status string `json:"status,omitempty"`

	// message explains it to people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ItemRunning is the status of an item that has not ended.
const ItemRunning = "Running"

// Ended reports whether the item has its last status: any other than Running.
func (i StepItem) Ended() bool { return i.Status != ItemRunning && i.Status != "" }
