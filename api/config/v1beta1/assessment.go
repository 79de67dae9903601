// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AssessmentState is whether an update makes progress.
//
// +kubebuilder:validation:Enum=Idle;Progressing;Waiting;Stuck;Unknown
type AssessmentState string

const (
	// StateIdle is when no update is in progress.
	StateIdle AssessmentState = "Idle"
	// StateProgressing is an update that makes progress.
	StateProgressing AssessmentState = "Progressing"
	// StateWaiting is an update that waits for something that is expected, such as a window.
	StateWaiting AssessmentState = "Waiting"
	// StateStuck is an update that does not continue unless a person acts.
	StateStuck AssessmentState = "Stuck"
	// StateUnknown is when data that is required is missing.
	StateUnknown AssessmentState = "Unknown"
)

// Assessment is the verdict on an update.
type Assessment struct {
	// state is whether the update makes progress.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// since is when the state was entered.
	//
	// +optional
	Since metav1.Time `json:"since,omitzero"`

	// actionRequired is whether a person must act.
	//
	// +required
	ActionRequired bool `json:"actionRequired"` //nolint:kubeapilinter // The question has two answers.

	// summary is one line for people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`

	// lastChangeTime is when the update last made progress.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// resumes is when an update that waits continues. It is absent if that is unknown.
	//
	// +optional
	Resumes *metav1.Time `json:"resumes,omitempty"`

	// causes are why the update is stuck or waits, the most severe first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=32
	Causes []Cause `json:"causes,omitempty"`

	// estimate is how long the update still takes.
	//
	// +optional
	Estimate *Estimate `json:"estimate,omitempty"`

	// sources are what the assessment is based on.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Sources []Source `json:"sources,omitempty"`
}

// Cause is why an update is stuck or waits.
type Cause struct {
	// reason is one word in CamelCase for programs.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// level is the severity.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// summary is one line for people.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`

	// consequences are what follows, one line each, in the order of cause and effect.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Consequences []string `json:"consequences,omitempty"`

	// insights are the UUIDs of the insights that the cause explains, its own first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Insights []string `json:"insights,omitempty"`

	// resources are the objects of the cause.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=512
	Resources []ResourceReference `json:"resources,omitempty"`

	// since is when the cause began.
	//
	// +optional
	Since metav1.Time `json:"since,omitzero"`

	// remedy is what a person can do. It is absent if nothing is known.
	//
	// +optional
	Remedy *Remedy `json:"remedy,omitempty"`
}

// RemedyType is what a remedy achieves.
//
// +kubebuilder:validation:Enum=Remedy;Diagnostic
type RemedyType string

const (
	// RemedyFixes removes the cause.
	RemedyFixes RemedyType = "Remedy"
	// RemedyDiagnoses shows the object that is the cause.
	RemedyDiagnoses RemedyType = "Diagnostic"
)

// Remedy is what a person can do about a cause.
type Remedy struct {
	// type is whether the remedy removes the cause or shows it.
	//
	// +required
	Type RemedyType `json:"type,omitempty"`

	// text is one line for people.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text,omitempty"`

	// commands are the arguments of oc or kubectl, one command line each.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Commands []string `json:"commands,omitempty"`
}

// Estimate is how long an update still takes.
type Estimate struct {
	// earliest is the earliest end. It is absent if it is unknown.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// latest is the latest end. It is absent if it is unknown.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// reason is why the estimate is unknown, or why it was extended.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// basis are what the estimate is derived from, one line for each part of the cluster.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Basis []string `json:"basis,omitempty"`
}

// Source is something that an assessment is based on.
type Source struct {
	// name is the name of the source, for example ClusterVersion, nodes, or informer NAME.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Name string `json:"name,omitempty"`

	// current is whether the data of the source is current.
	//
	// +required
	Current bool `json:"current"` //nolint:kubeapilinter // The question has two answers.

	// observedTime is when the source was last read.
	//
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// message is why the data is not current.
	//
	// +optional
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}
