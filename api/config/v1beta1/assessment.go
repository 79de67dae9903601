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
	// StateStuck is an update that does not continue on its own.
	StateStuck AssessmentState = "Stuck"
	// StateUnknown is when data that is required is missing.
	StateUnknown AssessmentState = "Unknown"
)

// Assessment is the verdict on an update. Its texts are single lines; times and durations that change
// while nothing happens are separate fields. Commands start with oc.
type Assessment struct {
	// state is whether the update makes progress.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// since is when the state was entered.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// actionRequired is whether the update continues only if a person acts.
	//
	// +required
	ActionRequired bool `json:"actionRequired"` //nolint:kubeapilinter // The question has two answers.

	// summary explains the state in one clause without a period, for example "Pool worker waits for
	// its window". It is absent if the state needs no explanation.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`

	// summarySince is since when the summary holds, to be read as "SUMMARY for 64m". It is absent if
	// the summary has no duration.
	//
	// +optional
	SummarySince *metav1.Time `json:"summarySince,omitempty"`

	// fromRelease is the release that is being replaced. It is absent if no update is in progress.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FromRelease string `json:"fromRelease,omitempty"`

	// release is the release that is being installed, or else the installed one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Release string `json:"release,omitempty"`

	// startedTime is when the update started. It is absent if none is in progress.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// installedTime is when the release was installed. It is absent during an update.
	//
	// +optional
	InstalledTime *metav1.Time `json:"installedTime,omitempty"`

	// lastChangeTime is when the update last made progress.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// resumes is when an update that waits continues on its own. It is absent if that is unknown.
	//
	// +optional
	Resumes *ScheduledTime `json:"resumes,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// next is the next scheduled update. It is absent if none is known.
	//
	// +optional
	Next *ScheduledTime `json:"next,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// remedy says what to do first.
	//
	// +optional
	Remedy *Remedy `json:"remedy,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// causes are why the update is stuck or waits, the most severe first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	Causes []Cause `json:"causes,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// watch are the warnings and errors that are not among the first causes, the worst first. Facts of
	// one informer with the same reason are one.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Watch []WatchedFact `json:"watch,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// estimate is how long the update still takes. It is absent if none is in progress.
	//
	// +optional
	Estimate *Estimate `json:"estimate,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.

	// sections are the control plane and the pools, one line of progress each, in the order in which
	// they are printed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=80
	Sections []SectionAssessment `json:"sections,omitempty"`

	// sources lists what the assessment is based on. An optional source, such as the machine configs, is
	// listed only while it cannot be read: findings that rest on it are not confirmed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Sources []Source `json:"sources,omitempty"`

	// lastKnown is the last verdict with complete data. It is set only in state Unknown.
	//
	// +optional
	LastKnown *LastKnown `json:"lastKnown,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// ScheduledTime is when something is scheduled.
type ScheduledTime struct {
	// time is when it happens.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// release is the release to which the cluster is updated then. It is absent if an update is in
	// progress.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Release string `json:"release,omitempty"`

	// by is the object that schedules it, for example an UpgradeJob or a MachineConfigPool.
	//
	// +optional
	By *ResourceReference `json:"by,omitempty"`
}

// WatchedFact is something that people should know although the update does not wait for it.
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

	// since is when it began. It is absent if that is unknown.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// detail holds anything else that is known, for example "ClusterOperatorDegraded: monitoring".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// updateInformer is the name of the third-party informer that reports it. It is absent for
	// built-in informers.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`
}

// Cause is why an update is stuck or waits: a chain from what is wrong to the part of the update that
// it affects. Causes of one section with the same reason are one.
type Cause struct {
	// reason is the reason of the first link.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// level is the severity.
	//
	// +optional
	Level Level `json:"level,omitempty"`

	// section is the name of the section that is affected.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Section string `json:"section,omitempty"`

	// updateInformer is the name of the informer that reports the cause. It is absent if the
	// assessment itself does.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`

	// since is when the cause began.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// chain is the cause and what follows from it, in the order of cause and effect.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	Chain []CauseLink `json:"chain,omitempty"` //nolint:kubeapilinter // Each field may be unknown.

	// remedy says what a person can do. It is absent if nothing is known.
	//
	// +optional
	Remedy *Remedy `json:"remedy,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// CauseLink is one link of a chain of causes.
type CauseLink struct {
	// reason is one word in CamelCase for programs.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message is one clause for people without a period. It names three objects at most.
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

	// objects are the objects by kind and namespace. If there are too many to list, they are fewer
	// than count; the insights list the others.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8192
	Objects []ObjectGroup `json:"objects,omitempty"` //nolint:kubeapilinter // Each field may be unknown.
}

// ObjectGroup is objects of one kind in one namespace.
type ObjectGroup struct {
	// apiVersion is the group and the version of the objects.
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

	// namespace is the namespace of the objects. It is absent if they have none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// names are the names of the objects, sorted.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8192
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`
}

// RemedyType says what a remedy achieves.
//
// +kubebuilder:validation:Enum=Remedy;Diagnostic;None
type RemedyType string

const (
	// RemedyFixes removes the cause.
	RemedyFixes RemedyType = "Remedy"
	// RemedyDiagnoses shows the object that is the cause.
	RemedyDiagnoses RemedyType = "Diagnostic"
	// RemedyNone is when nothing has to be done. A command is a suggestion.
	RemedyNone RemedyType = "None"
)

// Remedy describes what a person can do about a cause.
type Remedy struct {
	// type is whether the remedy removes the cause, shows it, or is a suggestion.
	//
	// +required
	Type RemedyType `json:"type,omitempty"`

	// text is one line for people. It ends with a colon if commands follow, and with a period
	// otherwise.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text,omitempty"`

	// commands are complete command lines. They start with oc.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Commands []string `json:"commands,omitempty"`
}

// EstimateBase is the moment from which an estimate counts.
//
// +kubebuilder:validation:Enum=Now;Resumption;Remedy
type EstimateBase string

const (
	// EstimateFromNow is an estimate with the times earliest and latest.
	EstimateFromNow EstimateBase = "Now"
	// EstimateFromResumption counts seconds from when the update resumes.
	EstimateFromResumption EstimateBase = "Resumption"
	// EstimateFromRemedy counts seconds from when the causes are removed.
	EstimateFromRemedy EstimateBase = "Remedy"
)

// Estimate is how long an update still takes.
type Estimate struct {
	// from is the moment from which the estimate counts.
	//
	// +required
	From EstimateBase `json:"from,omitempty"`

	// earliest is the earliest end. It is absent unless the estimate counts from now.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// latest is the latest end. Once it has passed, the update is overdue. Without earliest, it is the
	// one that was published last, and the next one is compared with it.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// minSeconds is the shortest time to the end from the moment that from names.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSeconds int64 `json:"minSeconds,omitempty"`

	// maxSeconds is the longest time to the end from the moment that from names; 0 means that it is
	// unknown.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxSeconds int64 `json:"maxSeconds,omitempty"`

	// reason is why the end is unknown, for example "no earlier update of this cluster is known". An
	// estimate may have a reason and seconds: these then count from the moment that from names.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// extended is why latest is later than it was before.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Extended string `json:"extended,omitempty"`

	// sections are the parts of the estimate, in the order in which they are printed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=80
	Sections []SectionEstimate `json:"sections,omitempty"`
}

// SectionEstimate is how long a section still takes. A section that has begun has times, another one
// seconds from its beginning.
type SectionEstimate struct {
	// name is the name of the section.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// earliest is the earliest end of a section that has begun.
	//
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// latest is the latest end of a section that has begun.
	//
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// minSeconds is the shortest time that a section takes that has not begun or is stopped.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSeconds int64 `json:"minSeconds,omitempty"`

	// maxSeconds is the longest time that a section takes that has not begun or is stopped.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxSeconds int64 `json:"maxSeconds,omitempty"`

	// basis says what the estimate is derived from, for example "9m to 13m per node in the last update".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Basis string `json:"basis,omitempty"`

	// reason is why the end of the section is unknown.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
}

// SectionAssessment is the verdict on the control plane or a pool, and its line of progress.
type SectionAssessment struct {
	// name is "control plane", or the name of the pool.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// pool is the pool. It is absent for the control plane.
	//
	// +optional
	Pool *ResourceReference `json:"pool,omitempty"`

	// state is whether the section makes progress.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// since is when the state was entered.
	//
	// +optional
	Since metav1.Time `json:"since,omitempty,omitzero"`

	// lastChangeTime is when the section last made progress.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// fingerprint identifies what the objects of the section report: if it differs from the last one,
	// the section has changed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Fingerprint string `json:"fingerprint,omitempty"`

	// startedTime is when the update of the section began.
	//
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`

	// completionTime is when the update of the section was complete.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// unit says what is counted: operators or nodes.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// total is the number of operators or nodes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Total int32 `json:"total,omitempty"`

	// updated is the number of those that match the release.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Updated int32 `json:"updated,omitempty"`

	// slots is how many nodes of the pool may be updated at a time. It is absent if that is unknown, or none may.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Slots int32 `json:"slots,omitempty"`

	// detail says what happens in the section, for example "network, dns updating" or "done after 62m".
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Detail string `json:"detail,omitempty"`

	// detailSince is since when that happens, to be read as "DETAIL (6m)". It is absent if the detail
	// has no duration.
	//
	// +optional
	DetailSince *metav1.Time `json:"detailSince,omitempty"`

	// parts are the operators or nodes that are being updated.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	Parts []SectionPart `json:"parts,omitempty"`

	// nodeSeconds are how long the nodes took that were updated in this update, in the order in which
	// they were completed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:Minimum=0
	NodeSeconds []int32 `json:"nodeSeconds,omitempty"`

	// operators are when operators were updated in this update.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=128
	Operators []OperatorOffset `json:"operators,omitempty"`
}

// SectionPart is an operator or a node that is being updated.
type SectionPart struct {
	// name is the name of the ClusterOperator or Node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// phase says what happens to it: updating, draining, or rebooting.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Phase string `json:"phase,omitempty"` //nolint:kubeapilinter // It is a text for people, no state of an object.

	// startedTime is when its update was first observed.
	//
	// +optional
	StartedTime metav1.Time `json:"startedTime,omitempty,omitzero"`

	// lastChangeTime is when it was last seen to change.
	//
	// +optional
	LastChangeTime metav1.Time `json:"lastChangeTime,omitempty,omitzero"`
}

// The names of the sources of an assessment that are not facts about the cluster.
const (
	// SourceStatusController is the Update Status Controller.
	SourceStatusController = "Update Status Controller"
	// SourceInformerPrefix starts the names of UpdateInformers as sources.
	SourceInformerPrefix = "informer "
)

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

	// message is why the data is not current, for example "no answer". It is absent if the data is
	// current, or if another source is why it is not.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is since when that is so, to be read as "MESSAGE for 9m". It is absent if the message has
	// no duration.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// detail is a word in parentheses, for example timeout, or progressing for a source that is
	// current.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Detail string `json:"detail,omitempty"`
}

// LastKnown is the last verdict with complete data.
type LastKnown struct {
	// state is that verdict.
	//
	// +required
	State AssessmentState `json:"state,omitempty"`

	// text is one line, for example "Updating 4.20.5 to 4.20.6, 21 of 33 operators".
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Text string `json:"text,omitempty"`

	// time is when the data was complete for the last time.
	//
	// +required
	Time metav1.Time `json:"time,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}
