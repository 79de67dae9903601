// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history holds the record of upgrades that people read and that the
// engine goes on from: what was tried, step by step, and how each step ended.
// Every API group of this project records its upgrades in these types.
//
// It knows no API group, no runbook and no rules: types and names only.
//
// +kubebuilder:object:generate=true
package history
