// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts tests the deployed alerts: their labels and annotations, the
// shell commands of their pages, and, with promtool and the cases in cases.yaml,
// when they fire and what their texts are.
//
// It knows the metrics from their generated reference page only.
package alerts
