// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks holds the rules that turn facts about a cluster into findings. Health gates, UpdatePlans,
// and the built-in update informers use the same rules.
//
// A rule writes nothing. Objects that cannot be read are missing, and missing facts are never a good
// result.
package checks
