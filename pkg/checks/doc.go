// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checks implements the rules that turn facts about a cluster into findings. Health gates, UpdatePlans, and the
// built-in update informers share these rules.
//
// Rules do not write anything. Objects that cannot be read are reported as missing, and missing facts never count as a
// good result.
package checks
