// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

// UpgradeSuspensionWindow suspends upgrades for a period, for example over public holidays. An upgrade is
// suspended if its startAfter is in the window. Upgrades that have already commenced continue.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=upgradesuspensionwindows,shortName=usw,categories=maintenance
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Start",type=string,JSONPath=`.spec.start`
// +kubebuilder:printcolumn:name="End",type=string,JSONPath=`.spec.end`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Configs",type=string,priority=1,JSONPath=`.status.matchingConfigs`
// +kubebuilder:printcolumn:name="Jobs",type=string,priority=1,JSONPath=`.status.matchingJobs`
type UpgradeSuspensionWindow struct {
	metav1.TypeMeta `json:",inline"`

	stored.Leftovers `json:"-"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the window and which upgrades it suspends.
	//
	// +required
	Spec UpgradeSuspensionWindowSpec `json:"spec,omitzero"`

	// status reports what the operator observed.
	//
	// +optional
	Status UpgradeSuspensionWindowStatus `json:"status,omitzero"` //nolint:kubeapilinter // It may be emptied: the operator observes it again.
}

// UpgradeSuspensionWindowSpec defines a window and which upgrades it suspends.
//
// +kubebuilder:validation:XValidation:rule="!self.start.matches('^([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') || !self.end.matches('^([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([12][0-9](0[48]|[2468][048]|[13579][26])|(12|16|20|24|28)00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$') || timestamp(self.start) < timestamp(self.end)",fieldPath=".end",message="must be after start, for example one day later"
type UpgradeSuspensionWindowSpec struct {
	// start is the start of the window (RFC 3339, inclusive), for example 2027-12-20T00:00:00+01:00.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	Start Timestamp `json:"start,omitempty"`

	// end is the end of the window (RFC 3339, exclusive), for example 2028-01-03T00:00:00+01:00.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	End Timestamp `json:"end,omitempty"`

	// reason explains the suspension to users, for example in Events.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// configSelector selects UpgradeConfigs by their labels. They create no UpgradeJob that would start in
	// the window. If it is not set, no UpgradeConfig is selected; an empty selector selects all.
	//
	// +optional
	ConfigSelector *LabelSelector `json:"configSelector,omitempty"`

	// jobSelector selects UpgradeJobs by their labels. They are skipped if they would start in the window.
	// If it is not set, no UpgradeJob is selected; an empty selector selects all.
	//
	// +optional
	JobSelector *LabelSelector `json:"jobSelector,omitempty"`
}

// UpgradeSuspensionWindowStatus reports what the operator observed.
//
// +kubebuilder:validation:MinProperties=0
type UpgradeSuspensionWindowStatus struct {
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

	// matchingConfigs lists the names of the UpgradeConfigs selected by configSelector.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	MatchingConfigs []string `json:"matchingConfigs,omitempty"`

	// matchingJobs lists the names of the UpgradeJobs that are selected by jobSelector, have not ended, and
	// whose latest attempt starts in the window.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	MatchingJobs []string `json:"matchingJobs,omitempty"`
}

// UpgradeSuspensionWindowList is a list of UpgradeSuspensionWindows.
//
// +kubebuilder:object:root=true
type UpgradeSuspensionWindowList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the UpgradeSuspensionWindows.
	Items []UpgradeSuspensionWindow `json:"items"`
}
