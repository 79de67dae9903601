// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alerts tests the alerts as they are deployed: that they are written as they should be, and, by promtool on
// the cases in cases.yaml, when they fire, when they do not, and what they say.
//
// It knows the metrics by their documentation alone, which is made of the code.
package alerts
