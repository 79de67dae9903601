// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kstatus shows how tools that do not know our kinds see an object.
package kstatus

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// absent represents a missing condition.
const absent = "–"

// Health is the health of an object. Missing conditions are "–".
type Health struct {
	Ready, Reconciling, Stalled, Slow string
	// Status is the status computed by kstatus.
	Status string
}

// Of returns the health of an object.
func Of(obj client.Object) (Health, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return Health{}, fmt.Errorf("converting %T: %w", obj, err)
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: content})
	if err != nil {
		return Health{}, fmt.Errorf("computing the status of %T: %w", obj, err)
	}
	var known struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &known); err != nil {
		return Health{}, fmt.Errorf("reading the conditions of %T: %w", obj, err)
	}
	health := Health{absent, absent, absent, absent, string(result.Status)}
	for _, c := range known.Status.Conditions {
		switch c.Type {
		case "Ready":
			health.Ready = string(c.Status)
		case "Reconciling":
			health.Reconciling = string(c.Status)
		case "Stalled":
			health.Stalled = string(c.Status)
		case "Slow":
			health.Slow = string(c.Status)
		}
	}
	return health, nil
}
