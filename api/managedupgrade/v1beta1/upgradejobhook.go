// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// HookEvent is an event of an upgrade on which hooks run.
//
// +kubebuilder:validation:Enum=Create;Start;UpgradeStart;UpgradeComplete;MachineConfigPoolUnpause;MachineConfigPoolUpdated;Success;Failure;Skip;Finish
type HookEvent string

const (
	// EventCreate is when the UpgradeJob was created: the version is pinned, and the upgrade waits
	// for its start.
	EventCreate HookEvent = "Create"
	// EventStart is when the upgrade starts: before the health checks.
	EventStart HookEvent = "Start"
	// EventUpgradeStart is when the health checks have passed, before the upgrade commences.
	EventUpgradeStart HookEvent = "UpgradeStart"
	// EventUpgradeComplete is when the control plane and the machine config pools that are not
	// delayed are upgraded.
	EventUpgradeComplete HookEvent = "UpgradeComplete"
	// EventMachineConfigPoolUnpause is before a delayed machine config pool is unpaused, once per
	// pool.
	EventMachineConfigPoolUnpause HookEvent = "MachineConfigPoolUnpause"
	// EventMachineConfigPoolUpdated is when a delayed machine config pool is updated, once per
	// pool.
	EventMachineConfigPoolUpdated HookEvent = "MachineConfigPoolUpdated"
	// EventSuccess is when the upgrade has succeeded.
	EventSuccess HookEvent = "Success"
	// EventFailure is when the upgrade has failed.
	EventFailure HookEvent = "Failure"
	// EventSkip is when the upgrade was skipped.
	EventSkip HookEvent = "Skip"
	// EventFinish is when the upgrade has ended, whatever its outcome, after Success, Failure, or
	// Skip.
	EventFinish HookEvent = "Finish"
)

// HookKind is a kind of upgrades for which hooks run.
//
// +kubebuilder:validation:Enum=UpgradeJob;UpgradeConfig
type HookKind string

const (
	// HookKindUpgradeJob is an UpgradeJob.
	HookKindUpgradeJob HookKind = "UpgradeJob"
	// HookKindUpgradeConfig is an UpgradeConfig of upgrade.managed.openshift.io.
	HookKindUpgradeConfig HookKind = "UpgradeConfig"
)

// HookRun is for which upgrades a hook runs.
//
// +kubebuilder:validation:Enum=Next;All
type HookRun string

const (
	// HookRunNext runs the hook for one upgrade: the next one that it selects.
	HookRunNext HookRun = "Next"
	// HookRunAll runs the hook for every upgrade that it selects.
	HookRunAll HookRun = "All"
)

// HookFailurePolicy says what happens to the upgrade if a hook fails.
//
// +kubebuilder:validation:Enum=Abort;Ignore
type HookFailurePolicy string

const (
	// HookFailureAbort aborts the upgrade, which fails.
	HookFailureAbort HookFailurePolicy = "Abort"
	// HookFailureIgnore continues the upgrade.
	HookFailureIgnore HookFailurePolicy = "Ignore"
)

// UpgradeJobHook runs a Job (batch/v1) on events of upgrades. A user who may create it may run
// code in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradejobhooks,shortName=ujh,categories=maintenance
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Events",type=string,JSONPath=`.spec.events`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="On Failure",type=string,JSONPath=`.spec.failurePolicy`
// +kubebuilder:printcolumn:name="Claimed By",type=string,JSONPath=`.status.claimedBy.name`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`
type UpgradeJobHook struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the Job, and when it runs.
	//
	// +required
	Spec UpgradeJobHookSpec `json:"spec,omitzero"`

	// status holds what the operator observed.
	//
	// +optional
	Status UpgradeJobHookStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// UpgradeJobHookSpec defines a Job, and when it runs. A change applies to events that begin later.
type UpgradeJobHookSpec struct {
	// events are the events on which the hook runs: Create, Start, UpgradeStart, UpgradeComplete,
	// MachineConfigPoolUnpause and MachineConfigPoolUpdated (once per delayed pool), Success,
	// Failure, Skip, and Finish.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Events []HookEvent `json:"events,omitempty"`

	// run is for which upgrades the hook runs: Next runs it for all its events of one upgrade, the
	// next one that it selects; All runs it for every upgrade. It defaults to All.
	//
	// +optional
	// +default="All"
	Run HookRun `json:"run,omitempty"`

	// failurePolicy says what happens if the hook fails: Ignore continues the upgrade; Abort aborts it, which counts
	// until the delayed machine config pools are updated. It defaults to Ignore.
	//
	// +optional
	// +default="Ignore"
	FailurePolicy HookFailurePolicy `json:"failurePolicy,omitempty"`

	// kinds are the kinds of upgrades for which the hook runs: UpgradeJob; UpgradeConfig, for the UpgradeConfigs of
	// upgrade.managed.openshift.io whose upgrader runs hooks. Without it, the hook runs for UpgradeJobs only.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Kinds []HookKind `json:"kinds,omitempty"`

	// selector selects upgrades by their labels. Without it, all are selected.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// template is the template of the Job (a JobTemplateSpec of batch/v1). Environment variables
	// describe the event (EVENT, EVENT_name, and others) and the object of the upgrade (JOB,
	// JOB_metadata_name, and others). A template that the API server does not accept is reported in
	// the condition Accepted.
	//
	// +required
	Template HookJobTemplate `json:"template,omitzero"`
}

// HookJobTemplate is a template of Jobs.
type HookJobTemplate struct {
	// metadata is the metadata of each Job. The operator adds labels and annotations of its own.
	//
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`

	// spec is the spec of each Job (a JobSpec of batch/v1, of whatever release). The pod's
	// restartPolicy defaults to Never. Set activeDeadlineSeconds: Jobs have no timeout of their
	// own; and ttlSecondsAfterFinished: Jobs are not deleted otherwise.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// UpgradeJobHookStatus holds what the operator observed.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeJobHookStatus struct {
	// conditions are Accepted, which reports whether the spec is valid, Ready, and Stalled. Other
	// conditions are removed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status reflects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// claimedBy is the upgrade for which a hook with run: Next runs. It is absent until its
	// first event begins.
	//
	// +optional
	ClaimedBy *HookClaim `json:"claimedBy,omitempty"`
}

// HookClaim identifies an upgrade in the namespace of a hook.
//
// +kubebuilder:validation:MinProperties=0
type HookClaim struct {
	// kind is the kind of the upgrade. Without it, the upgrade is an UpgradeJob.
	//
	// +optional
	Kind HookKind `json:"kind,omitempty"`

	// version is the version that the upgrade of an UpgradeConfig leads to. It is absent for an UpgradeJob.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// name is the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the UID of the object.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	UID string `json:"uid,omitempty"`
}

// UpgradeJobHookList is a list of UpgradeJobHooks.
//
// +kubebuilder:object:root=true
type UpgradeJobHookList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpgradeJobHooks.
	Items []UpgradeJobHook `json:"items"`
}
