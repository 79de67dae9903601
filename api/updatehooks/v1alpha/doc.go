// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha contains what the Update Status Controller and informers exchange over HTTPS: the
// paths, and the requests and responses in JSON.
//
// The package contains types and names. Package informersdk answers the requests, and the Update
// Status Controller sends them.
//
// +kubebuilder:object:generate=true
package v1alpha
