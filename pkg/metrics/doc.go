// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes upgrades and drains to Prometheus. Gauges show the last saved state of
// each upgrade. Counters and histograms cover events since the start of the process.
//
// The package makes no decisions about upgrades.
package metrics
