// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history defines the record of an upgrade: its attempts, step by step, and how each step
// ended. People read the record, and the engine continues from it. Every API group of this project
// records its upgrades in these types.
//
// It contains types and names only: no API group, no runbook, and no rules.
//
// +kubebuilder:object:generate=true
package history
