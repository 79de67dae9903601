// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineConfigPoolSelector selects machine config pools by their labels.
//
// +kubebuilder:validation:MinProperties=0
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="set matchLabels or matchExpressions: without them every machine config pool would be selected, master included"
// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="each operator of matchExpressions must be In or NotIn with values, or Exists or DoesNotExist without values"
type MachineConfigPoolSelector struct {
	// matchLabels lists labels, with their values, that a pool must have. It may also contain a label
	// selector, whose matchLabels and matchExpressions must then match.
	//
	// +optional
	MatchLabels PoolLabels `json:"matchLabels,omitzero"` //nolint:kubeapilinter // hack/crds limits its properties: controller-gen cannot where a type decodes itself.

	// matchExpressions is a list of label requirements. All of them must be met. Valid operators are In,
	// NotIn, Exists, and DoesNotExist.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// PoolLabels contains labels of machine config pools, or a label selector.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) && !has(self.matchExpressions) || has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="set labels, matchLabels, or matchExpressions: without them every machine config pool would be selected, master included"
// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="each operator of matchExpressions must be In or NotIn with values, or Exists or DoesNotExist without values"
type PoolLabels struct {
	// Labels are the labels that a pool must have, taken from the remaining fields of the object.
	Labels map[string]string `json:"-"`

	// matchLabels lists labels, with their values, that a pool must have.
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

// UnmarshalJSON decodes labels, a label selector, or both.
func (in *PoolLabels) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("decoding labels: %w", err)
	}
	*in = PoolLabels{}
	for name, value := range all {
		var err error
		switch name {
		case "matchLabels":
			err = json.Unmarshal(value, &in.MatchLabels)
		case "matchExpressions":
			err = json.Unmarshal(value, &in.MatchExpressions)
		default:
			var label string
			if err = json.Unmarshal(value, &label); err == nil {
				if in.Labels == nil {
					in.Labels = map[string]string{}
				}
				in.Labels[name] = label
			}
		}
		if err != nil {
			return fmt.Errorf("decoding label %s: %w", name, err)
		}
	}
	return nil
}

// MarshalJSON encodes the labels and the label selector into one object.
func (in PoolLabels) MarshalJSON() ([]byte, error) {
	all := map[string]any{}
	for name, value := range in.Labels {
		all[name] = value
	}
	if in.MatchLabels != nil {
		all["matchLabels"] = in.MatchLabels
	}
	if in.MatchExpressions != nil {
		all["matchExpressions"] = in.MatchExpressions
	}
	return json.Marshal(all)
}

// Selector returns a label selector that combines all requirements.
func (in *MachineConfigPoolSelector) Selector() *LabelSelector {
	selector := &LabelSelector{
		MatchLabels:      maps.Clone(in.MatchLabels.Labels),
		MatchExpressions: slices.Concat(in.MatchLabels.MatchExpressions, in.MatchExpressions),
	}
	for _, name := range slices.Sorted(maps.Keys(in.MatchLabels.MatchLabels)) {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: name, Operator: metav1.LabelSelectorOpIn, Values: []string{in.MatchLabels.MatchLabels[name]},
		})
	}
	return selector
}
