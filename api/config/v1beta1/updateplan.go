// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UpdatePlan analyzes an update that has not been started, and records the risks that an administrator
// accepts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=updateplans,scope=Cluster,shortName=up,categories=update
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRelease`
// +kubebuilder:printcolumn:name="From",type=string,JSONPath=`.status.fromRelease`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Startable",type=string,JSONPath=`.status.conditions[?(@.type=="Startable")].status`
// +kubebuilder:printcolumn:name="Unaccepted",type=integer,JSONPath=`.status.counts.unaccepted`
// +kubebuilder:printcolumn:name="Analyzed",type=date,JSONPath=`.status.lastAnalysisTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Startable")].message`
// +kubebuilder:validation:XValidation:rule="!self.spec.targetRelease.matches('^[-.0-9a-z]+$') || self.metadata.name == 'update-plan-' + self.spec.targetRelease",message="metadata.name must be update-plan- and spec.targetRelease, for example update-plan-4.20.6: there is one plan for each release"
// +kubebuilder:validation:XValidation:rule="self.spec.targetRelease.matches('^[-.0-9a-z]+$') || self.metadata.name.matches('-[0-9a-f]{8}$') && self.metadata.name.startsWith('update-plan-' + self.spec.targetRelease.lowerAscii().replace('+', '-') + '-') && self.metadata.name.size() == self.spec.targetRelease.size() + 21",message="metadata.name must be update-plan-, spec.targetRelease in lower case with - instead of +, -, and the first 8 digits of its SHA-256 hash, which printf %s RELEASE | sha256sum prints"
type UpdatePlan struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata. The name must be update-plan- followed by the target
	// release.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the target release and the accepted risks.
	//
	// +required
	Spec UpdatePlanSpec `json:"spec,omitzero"`

	// status contains the analysis. It is written by the Update Status Controller.
	//
	// +optional
	Status UpdatePlanStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: it is observed again.
}

// UpdatePlanNamePrefix is the prefix of the name of each UpdatePlan. It is followed by the target release.
const UpdatePlanNamePrefix = "update-plan-"

// UpdatePlanSpec defines the target release and the accepted risks.
type UpdatePlanSpec struct {
	// targetRelease is the release to analyze, for example 4.14.4.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-((0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)([.](0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?([+][0-9a-zA-Z-]+([.][0-9a-zA-Z-]+)*)?$')",message="must be a semantic version without a leading v, for example 4.20.6"
	// +kubebuilder:validation:XValidation:rule="!self.matches('-[.+]|-$|[.+]-|^[0-9.]+--')",message="each part must start and end with a letter or a digit, for example 4.21.0-rc.1"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot change: create another UpdatePlan for another release"
	TargetRelease string `json:"targetRelease,omitempty"`

	// updatePlanResourceVersion is the resourceVersion of the UpdatePlan that the administrator reviewed
	// before accepting risks.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UpdatePlanResourceVersion string `json:"updatePlanResourceVersion,omitempty"`

	// acceptedInsights lists the insights whose risk the administrator has accepted or rejected.
	//
	// +optional
	// +listType=map
	// +listMapKey=updateInformer
	// +listMapKey=uid
	// +listMapKey=uuid
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=512
	AcceptedInsights []AcceptedInsight `json:"acceptedInsights,omitempty"`
}

// AcceptedInsight is an insight whose risk the administrator has accepted or explicitly rejected.
type AcceptedInsight struct {
	// updateInformer is the name of the informer that reported the insight.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UpdateInformer string `json:"updateInformer,omitempty"`

	// uid is the uid of the insight.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	UID string `json:"uid,omitempty"`

	// uuid is the uuid of the insight. It may be omitted if only one insight has the uid.
	//
	// +optional
	// +default=""
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-f]{32})?$')",message="must be the uuid of an insight of status, 32 hexadecimal digits in lower case, or empty"
	UUID string `json:"uuid"` //nolint:kubeapilinter // A key of the list is never absent.

	// accepted reports whether the risk is accepted.
	//
	// +required
	Accepted bool `json:"accepted"` //nolint:kubeapilinter // The seed prints a boolean.

	// reason explains why the risk is accepted.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// acceptedBy is the name of the user who accepted the risk.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	AcceptedBy string `json:"acceptedBy,omitempty"`

	// acceptedTime is when the risk was accepted.
	//
	// +optional
	AcceptedTime *metav1.Time `json:"acceptedTime,omitempty"`
}

// UpdatePlanStatus contains the analysis of an update that has not been started.
//
// +kubebuilder:validation:MinProperties=0
type UpdatePlanStatus struct {
	// conditions are Complete, Startable, AcceptanceStale, Ready, Reconciling, and Stalled.
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

	// controlPlane contains the insights about the control plane.
	//
	// +optional
	ControlPlane *ControlPlaneStatus `json:"controlPlane,omitempty"`

	// workerPools contains the insights about the pools of nodes.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	WorkerPools []WorkerPoolStatus `json:"workerPools,omitempty"`

	// recentlyResolved lists the insights that were resolved in the last 24 hours, newest first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=64
	RecentlyResolved []ResolvedInsight `json:"recentlyResolved,omitempty"`

	// fromRelease is the release of the cluster at the time of the analysis.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	FromRelease string `json:"fromRelease,omitempty"`

	// lastAnalysisTime is when the last analysis was completed.
	//
	// +optional
	LastAnalysisTime *metav1.Time `json:"lastAnalysisTime,omitempty"`

	// lastRequestedTime is when a user last requested an analysis.
	//
	// +optional
	LastRequestedTime *metav1.Time `json:"lastRequestedTime,omitempty"`

	// lastRefresh is the token of the annotation upgrade.managed.openshift.io/refresh reflected in this
	// status.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	LastRefresh string `json:"lastRefresh,omitempty"`

	// counts contains the numbers of insights that need acceptance.
	//
	// +optional
	Counts *InsightCounts `json:"counts,omitempty"`
}

// InsightCounts contains the numbers of insights that need acceptance.
type InsightCounts struct {
	// total is the number of insights that need acceptance.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"` //nolint:kubeapilinter // 0 is printed.

	// accepted is the number of these insights that are accepted.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Accepted int32 `json:"accepted"` //nolint:kubeapilinter // 0 is printed.

	// unaccepted is the number of these insights that are not accepted.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Unaccepted int32 `json:"unaccepted"` //nolint:kubeapilinter // 0 is printed.
}

// UpdatePlanList is a list of UpdatePlans.
//
// +kubebuilder:object:root=true
type UpdatePlanList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpdatePlans.
	Items []UpdatePlan `json:"items"`
}
