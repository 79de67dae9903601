// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradeconfig carries out UpgradeConfigs: it decides whether and when
// an upgrade may begin, lets the engine take the steps of its runbook, and
// shows in the status what was done and what comes next.
//
// It does not know what the steps do, nor which runbooks there are.
package upgradeconfig
