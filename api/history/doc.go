// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history defines the record of an upgrade: its attempts, the steps of each attempt, and their
// results. Users read the record, and the engine resumes from it. All API groups of this project share
// these types.
//
// The package contains only types and names. The rules are in package engine.
//
// +kubebuilder:object:generate=true
package history
