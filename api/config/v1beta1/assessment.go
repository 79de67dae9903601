// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AssessmentState describes whether an update makes progress.
//
// +kubebuilder:validation:Enum=Idle;Progressing;Waiting;Stuck;Unknown
type AssessmentState string

const (
	// StateIdle is the state if no update is in progress.
	StateIdle AssessmentState = "Idle"
	// StateProgressing is the state of an update that makes progress.
	StateProgressing AssessmentState = "Progressing"
	// StateWaiting is the state of an update that waits for something expected, such as a window.
	StateWaiting AssessmentState = "Waiting"
	// StateStuck is the state of an update that will not continue on its own.
	StateStuck AssessmentState = "Stuck"
	// StateUnknown is the state if required data is missing.
	StateUnknown AssessmentState = "Unknown"
)

// Assessment is the verdict on an update. All texts are single lines. Times and durations that change even
// if nothing happens are in separate fields. Commands start with oc.
type Assessment struct {
	// state describes whether the update makes progress.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// since is when the update entered this state.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// actionRequired reports whether the update needs user action to continue.
	//
	// +required
	ActionRequired bool `json:"actionRequired"` //nolint:kubeapilinter // The question has two answers.

	// summary explains the state in one clause without a period, for example "Pool worker waits for its
	// window". It is absent if the state needs no explanation.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`

	// summarySince is when the summary became true, displayed as "SUMMARY for 64m". It is absent if the
	// summary has no duration.
	//
	// +optional
	SummarySince *metav1.Time `json:"summarySince,omitempty"`

	// fromRelease is the release being replaced. It is absent if no update is in progress.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FromRelease string `json:"fromRelease,omitempty"`

	// release is the release being installed or, if no update is in progress, the installed release.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Release string `json:"release,omitempty"`

	// startedTime is when the update started. It is absent if no update is in progress.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// installedTime is when the current release was installed. It is absent during an update.
	//
	// +optional
	InstalledTime *metav1.Time `json:"installedTime,omitempty"`

	// lastChangeTime is when the update last made progress.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// resumes is when a waiting update will continue on its own. It is absent if the time is unknown.
	//
	// +optional
	Resumes *ScheduledTime `json:"resumes,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// next is the next scheduled update. It is absent if no update is scheduled.
	//
	// +optional
	Next *ScheduledTime `json:"next,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// remedy describes what to do first.
	//
	// +optional
	Remedy *Remedy `json:"remedy,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// causes lists the reasons why the update is stuck or waiting, most severe first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	Causes []Cause `json:"causes,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// watch lists warnings and errors that causes does not show first, most severe first. Findings of one
	// informer with the same reason are combined.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Watch []WatchedFact `json:"watch,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// estimate is the estimated remaining time. It is absent if no update is in progress.
	//
	// +optional
	Estimate *Estimate `json:"estimate,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// sections lists the control plane and the pools with their progress, in display order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=80
	Sections []SectionAssessment `json:"sections,omitempty"`

	// sources lists the data that the assessment is based on. An optional source, such as the machine
	// configs, is listed only while it cannot be read. Findings based on it are then not confirmed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Sources []Source `json:"sources,omitempty"`

	// lastKnown is the last verdict based on complete data. It is set only in state Unknown.
	//
	// +optional
	LastKnown *LastKnown `json:"lastKnown,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// ScheduledTime is the time of a scheduled event.
type ScheduledTime struct {
	// time is when the event is scheduled.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// release is the target release of the update. It is absent if an update is already in progress.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Release string `json:"release,omitempty"`

	// by is the object that defines the schedule, for example an UpgradeJob or a MachineConfigPool.
	//
	// +optional
	By *ResourceReference `json:"by,omitempty"`
}

// WatchedFact is a finding that users should know about although it does not block the update.
type WatchedFact struct {
	// level is the severity.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// reason is the reason of the insights.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message is one clause, for example "node worker-1 is not ready".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the finding was first true. It is absent if the time is unknown.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// detail contains additional information, for example "ClusterOperatorDegraded: monitoring".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// updateInformer is the name of the third-party informer that reported the finding. It is absent for
	// built-in informers.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`
}

// Cause explains why an update is stuck or waiting, as a chain from the root problem to the affected part
// of the update. Causes with the same reason in one section are combined.
type Cause struct {
	// reason is the reason of the first link in the chain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// level is the severity.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// section is the name of the affected section.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Section string `json:"section,omitempty"`

	// updateInformer is the name of the informer that reported the cause. It is absent if the cause was
	// found by the assessment itself.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`

	// since is when the cause began.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// chain lists the cause and its effects, in that order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Chain []CauseLink `json:"chain,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// remedy describes what a user can do. It is absent if no remedy is known.
	//
	// +optional
	Remedy *Remedy `json:"remedy,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// CauseLink is one link in a chain of causes.
type CauseLink struct {
	// reason is a machine-readable CamelCase reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message is one human-readable clause without a period. It names at most three objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// count is the number of objects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// objects lists the objects by kind and namespace. It may contain fewer objects than count; the
	// insights list the others.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8192
	Objects []ObjectGroup `json:"objects,omitempty"` //nolint:kubeapilinter // Each field may be unknown.
}

// ObjectGroup is a group of objects of one kind in one namespace.
type ObjectGroup struct {
	// apiVersion is the API group and version of the objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// namespace is the namespace of the objects. It is absent for cluster-scoped objects.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// names lists the names of the objects, sorted.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8192
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`
}

// RemedyType describes the effect of a remedy.
//
// +kubebuilder:validation:Enum=Remedy;Diagnostic;None
type RemedyType string

const (
	// RemedyFixes removes the cause.
	RemedyFixes RemedyType = "Remedy"
	// RemedyDiagnoses shows the object that causes the problem.
	RemedyDiagnoses RemedyType = "Diagnostic"
	// RemedyNone indicates that no action is required. Commands are suggestions.
	RemedyNone RemedyType = "None"
)

// Remedy describes what a user can do about a cause.
type Remedy struct {
	// type indicates whether the remedy removes the cause, helps to diagnose it, or is only a suggestion.
	//
	// +required
	Type RemedyType `json:"type,omitempty"`

	// text is one human-readable line. It ends with a colon if commands follow, and with a period
	// otherwise.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text,omitempty"`

	// commands lists complete command lines. They start with oc.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Commands []string `json:"commands,omitempty"`
}

// EstimateBase is the starting point of an estimate.
//
// +kubebuilder:validation:Enum=Now;Resumption;Remedy
type EstimateBase string

const (
	// EstimateFromNow is an estimate given by the times earliest and latest.
	EstimateFromNow EstimateBase = "Now"
	// EstimateFromResumption counts seconds from the time the update resumes.
	EstimateFromResumption EstimateBase = "Resumption"
	// EstimateFromRemedy counts seconds from the time the causes are removed.
	EstimateFromRemedy EstimateBase = "Remedy"
)

// Estimate is the estimated remaining time of an update.
type Estimate struct {
	// from is the starting point of the estimate.
	//
	// +required
	From EstimateBase `json:"from,omitempty"`

	// earliest is the earliest expected end. It is set only if the estimate counts from now.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// latest is the latest expected end. After this time, the update is overdue. If earliest is not set,
	// latest is the last published value, kept for comparison with the next estimate.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// minSeconds is the minimum remaining time in seconds, counted from the point given by from.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSeconds int64 `json:"minSeconds,omitempty"`

	// maxSeconds is the maximum remaining time in seconds, counted from the point given by from. It is 0 if
	// the maximum is unknown.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxSeconds int64 `json:"maxSeconds,omitempty"`

	// reason explains why the end is unknown, for example "no earlier update of this cluster is known". If
	// seconds are also set, they count from the point given by from.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// extended explains why latest is later than in the previous estimate.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Extended string `json:"extended,omitempty"`

	// sections lists the estimates of the sections, in display order.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=80
	Sections []SectionEstimate `json:"sections,omitempty"`
}

// SectionEstimate is the estimated remaining time of a section: start and end times for a section that has
// started, and seconds from its start for any other section.
type SectionEstimate struct {
	// name is the name of the section.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// earliest is the earliest expected end of a section that has started.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// latest is the latest expected end of a section that has started.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// minSeconds is the minimum duration in seconds of a section that has not started or is stopped.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSeconds int64 `json:"minSeconds,omitempty"`

	// maxSeconds is the maximum duration in seconds of a section that has not started or is stopped.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxSeconds int64 `json:"maxSeconds,omitempty"`

	// basis describes the data behind the estimate, for example "9m to 13m per node in the last update".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Basis string `json:"basis,omitempty"`

	// reason explains why the end of the section is unknown.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// SectionAssessment is the verdict on the control plane or one pool, and its progress.
type SectionAssessment struct {
	// name is "control plane" or the name of the pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// pool identifies the pool. It is absent for the control plane.
	//
	// +optional
	Pool *ResourceReference `json:"pool,omitempty"`

	// state describes whether the section makes progress.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// since is when the section entered this state.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// lastChangeTime is when the section last made progress.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// fingerprint is a hash of the observed state of the section. The section has changed if the
	// fingerprint changes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fingerprint string `json:"fingerprint,omitempty"`

	// startedTime is when the update of the section started.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// completionTime is when the update of the section was completed.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// unit is the unit of the counts: operators or nodes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// total is the total number of operators or nodes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Total int32 `json:"total,omitempty"`

	// updated is the number of operators or nodes that match the release.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Updated int32 `json:"updated,omitempty"`

	// slots is the number of nodes in the pool that may be updated at the same time. It is absent if the
	// number is unknown or zero.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Slots int32 `json:"slots,omitempty"`

	// detail describes the current activity, for example "network, dns updating" or "done after 62m".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// detailSince is when the detail became true, displayed as "DETAIL (6m)". It is absent if the detail
	// has no duration.
	//
	// +optional
	DetailSince *metav1.Time `json:"detailSince,omitempty"`

	// parts lists the operators or nodes that are being updated.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	Parts []SectionPart `json:"parts,omitempty"`

	// nodeSeconds lists the durations in seconds of the node updates completed in this update, in order of
	// completion.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Minimum=0
	NodeSeconds []int32 `json:"nodeSeconds,omitempty"`

	// operators lists when operators were updated in this update.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Operators []OperatorOffset `json:"operators,omitempty"`
}

// SectionPart is an operator or node that is being updated.
type SectionPart struct {
	// name is the name of the ClusterOperator or Node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// phase is the current activity: updating, draining, or rebooting.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Phase string `json:"phase,omitempty"` //nolint:kubeapilinter // It is a text for people, no state of an object.

	// startedTime is when the update of the operator or node was first observed.
	//
	// +optional
	StartedTime metav1.Time `json:"startedTime,omitempty,omitzero"`

	// lastChangeTime is when the operator or node last changed.
	//
	// +optional
	LastChangeTime metav1.Time `json:"lastChangeTime,omitempty,omitzero"`
}

// Names of assessment sources that do not contain facts about the cluster.
const (
	// SourceStatusController is the Update Status Controller.
	SourceStatusController = "Update Status Controller"
	// SourceInformerPrefix is the prefix of the source names of UpdateInformers.
	SourceInformerPrefix = "informer "
)

// Source is a source of data for an assessment.
type Source struct {
	// name is the name of the source, for example ClusterVersion, nodes, or informer NAME.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Name string `json:"name,omitempty"`

	// current reports whether the data from this source is current.
	//
	// +required
	Current bool `json:"current"` //nolint:kubeapilinter // The question has two answers.

	// observedTime is when the source was last read.
	//
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`

	// message explains why the data is not current, for example "no answer". It is absent if the data is
	// current, or if the cause is another source.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is when the message became true, displayed as "MESSAGE for 9m". It is absent if the message has
	// no duration.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// detail is a word displayed in parentheses, for example timeout, or progressing for a current source.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Detail string `json:"detail,omitempty"`
}

// LastKnown is the last verdict based on complete data.
type LastKnown struct {
	// state is the state at that time.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// text is the verdict in one line, for example "Updating 4.20.5 to 4.20.6, 21 of 33 operators".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text,omitempty"`

	// time is when the data was last complete.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}
