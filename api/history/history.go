// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase says how far an upgrade has come.
//
// +kubebuilder:validation:Enum=New;Pending;Upgrading;Upgraded;Failed;Unknown
type Phase string

const (
	// PhaseNew is an upgrade that was seen and not yet looked at.
	PhaseNew Phase = "New"
	// PhasePending is an upgrade whose time has not come, or that may not start yet.
	PhasePending Phase = "Pending"
	// PhaseUpgrading is an upgrade whose steps are being taken.
	PhaseUpgrading Phase = "Upgrading"
	// PhaseUpgraded is an upgrade that is complete.
	PhaseUpgraded Phase = "Upgraded"
	// PhaseFailed is an upgrade that was given up, or never started.
	PhaseFailed Phase = "Failed"
	// PhaseUnknown is an upgrade whose state cannot be read at present.
	PhaseUnknown Phase = "Unknown"
)

// Record is the record of the upgrade to one version.
type Record struct {
	// version is the version that the upgrade leads to, e.g. 4.4.6.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// phase says how far the upgrade has come.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"` //nolint:kubeapilinter // The field is given; the conditions beside it say more.

	// attempt counts the attempts at this version, from 1. A changed time after
	// a failure begins a new attempt, whose conditions start anew.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// upgradeAt is the time that was asked for in this attempt.
	//
	// +optional
	UpgradeAt *metav1.Time `json:"upgradeAt,omitempty"`

	// precedingVersion is the version that was installed when the upgrade commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PrecedingVersion string `json:"precedingVersion,omitempty"`

	// precedingChannel is the update channel before the upgrade changed it, so that it can be restored.
	// It is recorded before the channel is changed; empty means that none was set.
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

	// requestTime is when the upgrade was requested from the cluster. It is recorded before the request
	// is made, and removed when the request is withdrawn.
	//
	// +optional
	RequestTime *metav1.Time `json:"requestTime,omitempty"`

	// reason is the CamelCase reason for which the attempt has not started yet, or ended.
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

	// startTime is when the first step began. Without it nothing was done yet.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// commenceTime is when the upgrade passed its point of no return: the cluster version operator
	// had accepted the version.
	//
	// +optional
	CommenceTime *metav1.Time `json:"commenceTime,omitempty"`

	// completeTime is when the upgrade was over, its clean-up included.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// workerStartTime is when the step that waits for the worker nodes began.
	//
	// +optional
	WorkerStartTime *metav1.Time `json:"workerStartTime,omitempty"`

	// workerCompleteTime is when all worker nodes were upgraded.
	//
	// +optional
	WorkerCompleteTime *metav1.Time `json:"workerCompleteTime,omitempty"`

	// notifiedTime is the time before which all Events about the steps were written. An operator that
	// is restarted writes none of them again.
	//
	// +optional
	NotifiedTime *metav1.Time `json:"notifiedTime,omitempty"`

	// conditions are the steps that have begun, in the order of the runbook.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []StepCondition `json:"conditions,omitempty"` //nolint:kubeapilinter // A step's condition has times that a metav1.Condition lacks.

	// previousAttempts summarizes the attempts at this version that ended before, newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=3
	PreviousAttempts []PreviousAttempt `json:"previousAttempts,omitempty"`
}

// StepCondition is what became of one step.
//
// A step is over once it has a completeTime. Then its status is True if the
// step is done or was skipped (the reason says why), and False if it failed.
// A step without a completeTime is being tried: False means "not yet", Unknown
// that its state cannot be found out at present.
type StepCondition struct {
	// type names the step by what holds once it is done, e.g. ControlPlaneUpgraded.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Type string `json:"type,omitempty"`

	// status is True once the step is no longer in the way, False while it is
	// or if it failed, Unknown while that cannot be found out.
	//
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status,omitempty"`

	// reason says in one CamelCase word why the status is what it is.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message says to people what is going on.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`

	// milestone is what the step means for the upgrade as a whole, e.g. Commenced.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Milestone Milestone `json:"milestone,omitempty"`

	// lastAnswer is what the step answered before its state became unknown.
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

	// reasonTime is when the reason last changed while the step waited. Absent means that the first
	// reason stands.
	//
	// +optional
	ReasonTime *metav1.Time `json:"reasonTime,omitempty"`

	// startTime is when the step was first tried.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completeTime is when the step was over.
	//
	// +optional
	CompleteTime *metav1.Time `json:"completeTime,omitempty"`

	// lastProbeTime is when the step was last looked at. While a step waits it
	// is renewed at least every five minutes, as a sign of life.
	//
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// lastTransitionTime is when the status last changed.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Milestone is what a step means for the upgrade as a whole.
type Milestone string

// StepAnswer is what a step answered.
//
// +kubebuilder:validation:MinProperties=0
type StepAnswer struct {
	// reason is one CamelCase word.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is for people.
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

	// status is one CamelCase word, e.g. Running, Succeeded, or Failed.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Status string `json:"status,omitempty"`

	// message is for people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
