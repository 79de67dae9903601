// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// ClusterUpgradeRun is the upgrade of one managed cluster by a ManagedClustersUpgrade, in the namespace of
// the cluster. The hub creates it when it admits or rejects the cluster, and for each canary when the
// rollout starts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterupgraderuns,shortName=cur,categories=fleet
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Upgrade",type=string,JSONPath=`.spec.managedClustersUpgrade.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.clusterVersion.version`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].reason`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Progressing")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Canary",type=boolean,priority=1,JSONPath=`.spec.canary`
// +kubebuilder:printcolumn:name="Group",type=integer,priority=1,JSONPath=`.spec.group`
type ClusterUpgradeRun struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is set by the hub when it admits or rejects the cluster. It changes only for a new attempt, or
	// if the hub withdraws the admission.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.attempt > oldSelf.attempt || (self.attempt == oldSelf.attempt && (!has(oldSelf.admissionTime) || !has(self.admissionTime)))",message="cannot change within an attempt: raise spec.attempt of the ManagedClustersUpgrade to retry the clusters that failed"
	// +kubebuilder:validation:XValidation:rule="self.managedClustersUpgrade == oldSelf.managedClustersUpgrade",fieldPath=".managedClustersUpgrade",message="cannot change"
	Spec ClusterUpgradeRunSpec `json:"spec,omitzero"`

	// status reports what the hub observed and did.
	//
	// +optional
	Status ClusterUpgradeRunStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the hub observes the cluster again.
}

// ClusterUpgradeRunSpec defines one attempt to upgrade a cluster.
type ClusterUpgradeRunSpec struct {
	// managedClustersUpgrade identifies the ManagedClustersUpgrade to which the run belongs.
	//
	// +required
	ManagedClustersUpgrade UpgradeReference `json:"managedClustersUpgrade,omitzero"`

	// attempt is the attempt of the ManagedClustersUpgrade.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// admissionTime is when the cluster was admitted or rejected. It identifies the attempt in the history.
	// It is absent while a canary waits for admission.
	//
	// +optional
	AdmissionTime metav1.Time `json:"admissionTime,omitzero"` //nolint:kubeapilinter // omitempty has no effect on a struct.

	// clusterVersion is the target release. If it is not set, only operators are upgraded and actions run.
	//
	// +optional
	ClusterVersion *fleetv1beta1.ClusterVersionSpec `json:"clusterVersion,omitempty"`

	// canary reports whether the cluster is a canary.
	//
	// +optional
	Canary bool `json:"canary,omitempty"` //nolint:kubeapilinter // A fact with two values.

	// group is the position of the cluster's group in the start order, starting at 1. It is absent if there
	// are no groups.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Group int32 `json:"group,omitempty"`

	// timeouts limits the duration of the parts of the upgrade. They default to the timeouts of an
	// UpgradeStrategy.
	//
	// +optional
	Timeouts Timeouts `json:"timeouts,omitzero"` //nolint:kubeapilinter // The hub fills it.

	// outcome is the result of the attempt if the hub decided it at admission. Nothing is then delivered to
	// the cluster.
	//
	// +optional
	Outcome *Outcome `json:"outcome,omitempty"` //nolint:kubeapilinter // A pointer shows that it may be absent.
}

// UpgradeReference names a ManagedClustersUpgrade.
type UpgradeReference struct {
	// namespace is the namespace of the ManagedClustersUpgrade.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// name is the name of the ManagedClustersUpgrade.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// uid is the UID of the ManagedClustersUpgrade.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID string `json:"uid,omitempty"`
}

// Timeouts limits the duration of the parts of a cluster upgrade.
//
// +kubebuilder:validation:MinProperties=0
type Timeouts struct {
	// clusterUpgrade is the maximum duration of the platform upgrade.
	//
	// +optional
	ClusterUpgrade fleetv1beta1.Duration `json:"clusterUpgrade,omitempty"`

	// operatorsUpgrade is the maximum duration of the operator upgrades.
	//
	// +optional
	OperatorsUpgrade fleetv1beta1.Duration `json:"operatorsUpgrade,omitempty"`

	// apply is the maximum time for the agent to apply the upgrade.
	//
	// +optional
	Apply fleetv1beta1.Duration `json:"apply,omitempty"`

	// action is the maximum duration of an action.
	//
	// +optional
	Action fleetv1beta1.Duration `json:"action,omitempty"`

	// failing is how long the cluster version operator may report Failing before the upgrade fails.
	//
	// +optional
	Failing fleetv1beta1.Duration `json:"failing,omitempty"`

	// stall is how long the cluster may make no progress before it is reported as stalled.
	//
	// +optional
	Stall fleetv1beta1.Duration `json:"stall,omitempty"`

	// soak is how long the upgraded cluster is observed before it releases its slot. If it is not set, the
	// cluster is not observed.
	//
	// +optional
	Soak fleetv1beta1.Duration `json:"soak,omitempty"`
}

// Outcome is the result of an attempt that was decided at admission.
type Outcome struct {
	// state is Complete or Failed.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self in ['Complete', 'Failed']",message="must be Complete or Failed"
	State ClusterUpgradeState `json:"state,omitempty"`

	// reason is the CamelCase reason.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason,omitempty"`

	// message explains the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// ClusterUpgradeState is the progress of a cluster upgrade.
//
// +kubebuilder:validation:Enum=NotStarted;Initialized;PartialUpgrade;Complete;Failed
type ClusterUpgradeState string

const (
	// StateNotStarted is the state of a cluster that is not admitted in this attempt.
	StateNotStarted ClusterUpgradeState = "NotStarted"
	// StateInitialized is the state of an admitted cluster whose history does not contain the release yet.
	StateInitialized ClusterUpgradeState = "Initialized"
	// StatePartialUpgrade is the state of a cluster whose history contains the release, but whose steps are
	// not all done.
	StatePartialUpgrade ClusterUpgradeState = "PartialUpgrade"
	// StateComplete is the state of a cluster whose steps are all done.
	StateComplete ClusterUpgradeState = "Complete"
	// StateFailed is the state of a cluster on which a step failed.
	StateFailed ClusterUpgradeState = "Failed"
)

// ClusterUpgradeRunStatus reports what the hub observed and did.
//
// +kubebuilder:validation:MinProperties=0
type ClusterUpgradeRunStatus struct {
	// conditions summarize the upgrade of the cluster: Accepted, Progressing, Succeeded, Slow, Ready,
	// Reconciling, and Stalled. Degraded is present if the hub is degraded. Other conditions are removed.
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

	// attempt is the attempt reflected in this status.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Attempt int32 `json:"attempt,omitempty"`

	// state is the progress of the cluster upgrade.
	//
	// +optional
	State ClusterUpgradeState `json:"state,omitempty"`

	// reason is the CamelCase reason for the state.
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

	// completionTime is when the upgrade of the cluster completed or failed.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// soakedUntil is when the soak ends and the upgraded cluster becomes complete. It is absent while the
	// cluster is failing or silent; the soak then starts again.
	//
	// +optional
	SoakedUntil *metav1.Time `json:"soakedUntil,omitempty"`

	// preUpgradeAction is the state of the pre-upgrade action. It is absent if there is no pre-upgrade
	// action.
	//
	// +optional
	PreUpgradeAction *ActionStatus `json:"preUpgradeAction,omitempty"`

	// postUpgradeAction is the state of the post-upgrade action. It is absent if there is no post-upgrade
	// action.
	//
	// +optional
	PostUpgradeAction *ActionStatus `json:"postUpgradeAction,omitempty"`

	// applied reports whether a pre-upgrade action or the upgrade has ever been applied to the cluster.
	//
	// +optional
	Applied bool `json:"applied,omitempty"` //nolint:kubeapilinter // A fact with two values.

	// accepted reports whether the cluster has accepted the release in this attempt, as shown by its
	// history.
	//
	// +optional
	Accepted bool `json:"accepted,omitempty"` //nolint:kubeapilinter // A fact with two values.

	// nextTime is when the upgrade will next change on its own, because a deadline expires or the soak
	// ends.
	//
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`

	// history contains one entry per attempt, newest first.
	//
	// +optional
	// +listType=map
	// +listMapKey=attempt
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=5
	History []history.Record `json:"history,omitempty"`
}

// ActionStatus is the state of an action on a cluster.
//
// +kubebuilder:validation:MinProperties=0
type ActionStatus struct {
	// applied reports whether the agent has applied the action.
	//
	// +optional
	Applied bool `json:"applied,omitempty"` //nolint:kubeapilinter // A fact with two values.

	// state is Progressing, Available, or Degraded.
	//
	// +optional
	State ActionState `json:"state,omitempty"`
}

// ActionState is the progress of an action.
//
// +kubebuilder:validation:Enum=Progressing;Available;Degraded
type ActionState string

const (
	// ActionProgressing is the state of an action in progress.
	ActionProgressing ActionState = "Progressing"
	// ActionAvailable is the state of a completed action.
	ActionAvailable ActionState = "Available"
	// ActionDegraded is the state of a failed action.
	ActionDegraded ActionState = "Degraded"
)

// ClusterUpgradeRunList is a list of ClusterUpgradeRuns.
//
// +kubebuilder:object:root=true
type ClusterUpgradeRunList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterUpgradeRuns.
	Items []ClusterUpgradeRun `json:"items"`
}
