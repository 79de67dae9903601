// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// HookEvent is an event of an upgrade that can run hooks.
//
// +kubebuilder:validation:Enum=Create;Start;UpgradeStart;UpgradeComplete;MachineConfigPoolUnpause;MachineConfigPoolUpdated;Success;Failure;Skip;Finish
type HookEvent string

const (
	// EventCreate occurs when the UpgradeJob has been created. Its version is pinned, and it waits for its
	// start.
	EventCreate HookEvent = "Create"
	// EventStart occurs when the upgrade starts, before the health checks.
	EventStart HookEvent = "Start"
	// EventUpgradeStart occurs after the health checks have passed, before the upgrade commences.
	EventUpgradeStart HookEvent = "UpgradeStart"
	// EventUpgradeComplete occurs when the control plane and all machine config pools that are not delayed
	// have been upgraded.
	EventUpgradeComplete HookEvent = "UpgradeComplete"
	// EventMachineConfigPoolUnpause occurs before a delayed machine config pool is unpaused, once per pool.
	EventMachineConfigPoolUnpause HookEvent = "MachineConfigPoolUnpause"
	// EventMachineConfigPoolUpdated occurs when a delayed machine config pool has been updated, once per
	// pool.
	EventMachineConfigPoolUpdated HookEvent = "MachineConfigPoolUpdated"
	// EventSuccess occurs when the upgrade has succeeded.
	EventSuccess HookEvent = "Success"
	// EventFailure occurs when the upgrade has failed.
	EventFailure HookEvent = "Failure"
	// EventSkip occurs when the upgrade was skipped.
	EventSkip HookEvent = "Skip"
	// EventFinish occurs when the upgrade has ended with any outcome, after Success, Failure, or Skip.
	EventFinish HookEvent = "Finish"
)

// HookKind is a kind of upgrade that can run hooks.
//
// +kubebuilder:validation:Enum=UpgradeJob;UpgradeConfig
type HookKind string

const (
	// HookKindUpgradeJob is an UpgradeJob.
	HookKindUpgradeJob HookKind = "UpgradeJob"
	// HookKindUpgradeConfig is an UpgradeConfig of upgrade.managed.openshift.io.
	HookKindUpgradeConfig HookKind = "UpgradeConfig"
)

// HookRun selects the upgrades that run a hook.
//
// +kubebuilder:validation:Enum=Next;All
type HookRun string

const (
	// HookRunNext runs the hook only for the next upgrade that it selects.
	HookRunNext HookRun = "Next"
	// HookRunAll runs the hook for every upgrade that it selects.
	HookRunAll HookRun = "All"
)

// HookFailurePolicy determines what happens to the upgrade if a hook fails.
//
// +kubebuilder:validation:Enum=Abort;Ignore
type HookFailurePolicy string

const (
	// HookFailureAbort aborts the upgrade, and the upgrade fails.
	HookFailureAbort HookFailurePolicy = "Abort"
	// HookFailureIgnore continues the upgrade.
	HookFailureIgnore HookFailurePolicy = "Ignore"
)

// UpgradeJobHook runs a Job (batch/v1) on events of upgrades. Users who can create UpgradeJobHooks can run
// code in their namespace.
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

	// spec defines the Job and when it runs.
	//
	// +required
	Spec UpgradeJobHookSpec `json:"spec,omitzero"`

	// status reports what the operator observed.
	//
	// +optional
	Status UpgradeJobHookStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// UpgradeJobHookSpec defines a Job and when it runs. Changes apply only to events that start later.
type UpgradeJobHookSpec struct {
	// events lists the events that run the hook: Create, Start, UpgradeStart, UpgradeComplete,
	// MachineConfigPoolUnpause and MachineConfigPoolUpdated (once per delayed pool), Success, Failure,
	// Skip, and Finish.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	Events []HookEvent `json:"events,omitempty"`

	// run selects the upgrades that run the hook: Next runs it for all its events of the next upgrade that
	// it selects, and no other; All runs it for every upgrade. It defaults to All.
	//
	// +optional
	// +default="All"
	Run HookRun `json:"run,omitempty"`

	// failurePolicy determines what happens if the hook fails. Ignore continues the upgrade. Abort aborts
	// it; this has no effect once the delayed machine config pools have been updated. It defaults to
	// Ignore.
	//
	// +optional
	// +default="Ignore"
	FailurePolicy HookFailurePolicy `json:"failurePolicy,omitempty"`

	// kinds lists the kinds of upgrades that run the hook: UpgradeJob, or UpgradeConfig for the
	// UpgradeConfigs of upgrade.managed.openshift.io whose upgrader runs hooks. By default, only
	// UpgradeJobs run the hook.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Kinds []HookKind `json:"kinds,omitempty"`

	// selector selects upgrades by their labels. By default, all upgrades are selected.
	//
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// template is the template of the Job (a JobTemplateSpec of batch/v1). Environment variables describe
	// the event (EVENT, EVENT_name, and others) and the upgrade object (JOB, JOB_metadata_name, and
	// others). If the API server rejects the template, the condition Accepted reports it.
	//
	// +required
	Template HookJobTemplate `json:"template,omitzero"`
}

// HookJobTemplate is a template for Jobs.
type HookJobTemplate struct {
	// metadata is the metadata of each Job. The operator adds its own labels and annotations.
	//
	// +optional
	Metadata *TemplateMetadata `json:"metadata,omitempty"`

	// spec is the spec of each Job (a JobSpec of batch/v1, in any Kubernetes release). The restartPolicy of
	// the pod defaults to Never. Set activeDeadlineSeconds, because Jobs have no timeout by default, and
	// ttlSecondsAfterFinished, because finished Jobs are not deleted otherwise.
	//
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec runtime.RawExtension `json:"spec,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.
}

// UpgradeJobHookStatus reports what the operator observed.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeJobHookStatus struct {
	// conditions are Accepted (whether the spec is valid), Ready, and Stalled. Other conditions are
	// removed.
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

	// claimedBy is the upgrade claimed by a hook with run: Next. It is absent until the first event of that
	// upgrade.
	//
	// +optional
	ClaimedBy *HookClaim `json:"claimedBy,omitempty"`
}

// HookClaim identifies an upgrade in the namespace of the hook.
//
// +kubebuilder:validation:MinProperties=0
type HookClaim struct {
	// kind is the kind of the upgrade. It defaults to UpgradeJob.
	//
	// +optional
	Kind HookKind `json:"kind,omitempty"`

	// version is the target version of an UpgradeConfig. It is absent for an UpgradeJob.
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
