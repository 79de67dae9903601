// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes upgrades and drains to Prometheus. The gauges show the last saved state
// of each upgrade; the counters and histograms count what ended while this process was running.
//
// The package decides nothing about upgrades.
package metrics
