// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry tells of upgrades outside their record: as Kubernetes
// Events, in metrics and in log lines. All of it is derived from what was saved.
//
// It decides nothing, and nothing waits for it.
package telemetry
