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
	// PhaseNew is the phase of an upgrade that is not due for a while. Its gates have not been evaluated
	// yet.
	PhaseNew Phase = "New"
	// PhasePending is the phase of an upgrade that cannot start yet.
	PhasePending Phase = "Pending"
	// PhaseUpgrading is the phase of an upgrade whose steps are running.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseUpgraded is the phase of a complete upgrade.
	PhaseUpgraded Phase = "Upgraded"
	// PhaseFailed is the phase of an upgrade that failed, was aborted, or never started.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown is the phase of an upgrade whose state cannot be determined.
	PhaseUnknown Phase = "Unknown"
	// PhasePaused is the phase of an upgrade that has nothing left to do but wait for a time or for a user.
	PhasePaused Phase = "Paused"
	// PhaseSkipped is the phase of an upgrade that did not commence, for a reason that is not a failure.
	// Only UpgradeJobs have this phase.
	PhaseSkipped Phase = "Skipped"
)

// Record is the record of an upgrade to one version.
type Record struct {
	// version is the version to upgrade to, for example 4.4.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// phase is the progress of the upgrade.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"` //nolint:kubeapilinter // The API specifies the field; the conditions give the details.

	// attempt is the number of the attempt at this version, starting at 1. Changing the time after a
	// failure starts a new attempt with new conditions.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// upgradeAt is the requested time of this attempt.
	//
	// +optional
	UpgradeAt *metav1.Time `json:"upgradeAt,omitempty"`

	// precedingVersion is the version that was installed when the upgrade commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PrecedingVersion string `json:"precedingVersion,omitempty"`

	// precedingChannel is the update channel before the upgrade changed it, for restoring it. It is
	// recorded before the change. An empty string stands for no channel.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=256
	PrecedingChannel *string `json:"precedingChannel,omitempty"`

	// channels lists the update channels that this attempt has requested, oldest first. Each is recorded
	// before it is set, to distinguish it from a channel set by another client.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=256
	Channels []string `json:"channels,omitempty"`

	// requestTime is when the upgrade was requested from the cluster. It is recorded before the request is
	// made, and removed if the request is withdrawn.
	//
	// +optional
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// requestedImage is the release image that was requested from the cluster. It is empty if the request
	// contained only the version.
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

	// startTime is when the first step started.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// commenceTime is when the upgrade passed its point of no return: the cluster version operator accepted
	// the version.
	//
	// +optional
	CommenceTime *metav1.Time `json:"commenceTime,omitempty"`

	// completeTime is when the upgrade ended, including its cleanup.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// workerStartTime is when the upgrade started to wait for the worker nodes.
	//
	// +optional
	WorkerStartTime *metav1.Time `json:"workerStartTime,omitempty"`

	// workerCompleteTime is when all worker nodes were upgraded.
	//
	// +optional
	WorkerCompleteTime *metav1.Time `json:"workerCompleteTime,omitempty"`

	// notifiedTime is the time up to which all Events about steps were published. After a restart, the
	// operator does not publish them again.
	//
	// +optional
	NotifiedTime *metav1.Time `json:"notifiedTime,omitempty"`

	// notifiedMilestones lists the milestones already notified for an earlier object with the same name
	// that was deleted after its upgrade had commenced. They are not notified again.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	NotifiedMilestones []Milestone `json:"notifiedMilestones,omitempty"`

	// conditions lists the steps that have started, in the order of the runbook.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []StepCondition `json:"conditions,omitempty"` //nolint:kubeapilinter // A metav1.Condition lacks some of the times.

	// previousAttempts lists the earlier attempts at this version, newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=3
	PreviousAttempts []PreviousAttempt `json:"previousAttempts,omitempty"`
}

// StepCondition is the state of one step.
//
// A step with a completeTime is finished: its status is True if it was done or skipped, and False if it
// failed. A step without a completeTime is running: its status is False while it waits, and Unknown while
// its state cannot be determined.
type StepCondition struct {
	// type is the name of the step. It states what holds when the step is done, for example
	// ControlPlaneUpgraded.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type,omitempty"`

	// status is True if the step was done or skipped, False if it is waiting or has failed, and Unknown if
	// its state cannot be determined.
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

	// milestone is the milestone of the upgrade that the step marks, for example Commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Milestone Milestone `json:"milestone,omitempty"`

	// lastAnswer contains the last reason and message before the state of the step became unknown.
	//
	// +optional
	LastAnswer *StepAnswer `json:"lastAnswer,omitempty"`

	// items lists named sub-results of the step, such as the hooks that it runs.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Items []StepItem `json:"items,omitempty"`

	// reasonTime is when the reason of a waiting step last changed. It is absent until the reason first
	// changes. It does not change while the state of the step is unknown.
	//
	// +optional
	ReasonTime *metav1.Time `json:"reasonTime,omitempty"`

	// progressTime is when the step last made progress, for example because another node was updated. It is
	// absent until then. A step that makes no progress for some time is slow.
	//
	// +optional
	ProgressTime *metav1.Time `json:"progressTime,omitempty"`

	// fingerprint is a hash of the observed state that the step is waiting on. The step has made progress
	// if the fingerprint changes. It is absent if a changed message counts as progress.
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

	// lastProbeTime is when the state of the step was last determined. It is updated at least every five
	// minutes while the step waits.
	//
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// lastTransitionTime is when the status last changed.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Milestone is the role of a step in the upgrade as a whole.
type Milestone string

// StepAnswer is a reason and a message reported by a step.
//
// +kubebuilder:validation:MinProperties=0
type StepAnswer struct {
	// reason is the CamelCase reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is a human-readable explanation.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// StepItem is a named sub-result of a step.
type StepItem struct {
	// name is the name of the item, unique within the step.
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

	// message is a human-readable explanation.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ItemRunning is the status of an item that is still running.
const ItemRunning = "Running"

// Ended reports whether the item has its final status: any status other than Running.
func (i StepItem) Ended() bool { return i.Status != ItemRunning && i.Status != "" }
