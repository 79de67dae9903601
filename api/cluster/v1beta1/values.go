// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Duration is a length of time in hours, minutes, and seconds, for example 2h, 90m, or 1h30m. It must be
// greater than zero and at most 7 days. The original spelling is preserved.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(h|m|s))+$')",message="must be hours, minutes, and seconds, each with at most 6 digits, for example 1h30m, or 24h for a day"
// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(h|m|s))+$') || (duration(self) > duration('0s') && duration(self) <= duration('168h'))",message="must be longer than 0s and at most 168h, which is 7 days"
type Duration string

// LabelSelector selects managed clusters by their labels. Both matchLabels and matchExpressions must match.
// The key name matches the label name or, for clusters without this label, metadata.name.
//
// +kubebuilder:validation:MinProperties=0
// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="each operator of matchExpressions must be In or NotIn with values, or Exists or DoesNotExist without values"
type LabelSelector struct {
	// matchLabels lists labels, with their values, that a managed cluster must have.
	//
	// +optional
	// +kubebuilder:validation:MinProperties=0
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions is a list of label requirements. All of them must be met. Valid operators are In,
	// NotIn, Exists, and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}
