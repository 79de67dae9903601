// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradejobhook has two controllers. One reports whether an UpgradeJobHook can run: its template is validated
// by the API server without creating anything. The other removes the finalizer of the Jobs of hooks once their results
// are recorded, or will not be recorded because the upgrade has ended or is gone.
//
// It runs no hook: that is a step, see package hooks.
package upgradejobhook
