// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgradejobhook has two controllers. One reports whether an UpgradeJobHook can run: the
// API server validates the template with a dry run. The other removes the finalizer from the Jobs
// of hooks once their results are recorded, or will not be recorded because the upgrade has ended
// or was deleted.
//
// It does not run hooks: a step does, see package hooks.
package upgradejobhook
