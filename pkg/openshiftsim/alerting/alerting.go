// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerting describes alerts that fire on a real or simulated cluster.
package alerting

import (
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Spec describes the monitoring of a cluster.
type Spec struct {
	// Alerts fire from the start. As on OpenShift, Watchdog fires as well.
	Alerts []Alert `json:"alerts,omitempty"`
}

// Alert is a firing alert.
type Alert struct {
	// Name is the value of the label alertname.
	Name string `json:"alert"`
	// Labels are the other labels, such as severity and namespace. Prometheus expands templates in
	// them.
	Labels map[string]string `json:"labels,omitempty"`
}

// Validate returns an error for each invalid field and lists the valid values.
func (s Spec) Validate(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	for i, alert := range s.Alerts {
		allErrs = append(allErrs, alert.Validate(path.Child("alerts").Index(i))...)
	}
	return allErrs
}

// Validate returns an error for each invalid field of the alert.
func (a Alert) Validate(path *field.Path) field.ErrorList {
	var allErrs field.ErrorList
	if a.Name == "" {
		allErrs = append(allErrs, field.Required(path.Child("alert"), "must be the name of an alert, such as etcdInsufficientMembers"))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		at := path.Child("labels").Key(name)
		switch {
		case !model.LegacyValidation.IsValidLabelName(name):
			allErrs = append(allErrs, field.Invalid(at, name, "must be the name of a label: letters, digits and underscores, such as severity"))
		case slices.Contains([]string{model.MetricNameLabel, model.AlertNameLabel, "alertstate"}, name):
			allErrs = append(allErrs, field.Forbidden(at, "Prometheus sets it"))
		case a.Labels[name] == "":
			allErrs = append(allErrs, field.Required(at, "must not be empty; Prometheus drops empty labels"))
		}
	}
	return allErrs
}

// LabelSet returns the labels that Prometheus reports.
func (a Alert) LabelSet() model.Metric {
	all := model.Metric{model.AlertNameLabel: model.LabelValue(a.Name)}
	for name, value := range a.Labels {
		all[model.LabelName(name)] = model.LabelValue(value)
	}
	return all
}
