// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 contains additions to the API group config.openshift.io that report on updates: an
// UpdateInformer registers a service that contributes insights, the UpdateStatus aggregates the insights
// about the update in progress, and an UpdatePlan aggregates the insights about a possible update.
//
// The package contains only types and names. The Update Status Controller writes the status of these
// objects. Package updatehooks defines its protocol with informers.
//
// +kubebuilder:object:generate=true
// +groupName=config.openshift.io
package v1beta1
