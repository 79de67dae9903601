// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha contains the protocol between the Update Status Controller and informers over HTTPS: its
// paths, and the requests and responses in JSON.
//
// The package contains only types and names. Package informersdk answers the requests, and the Update
// Status Controller sends them.
//
// +kubebuilder:object:generate=true
package v1alpha
