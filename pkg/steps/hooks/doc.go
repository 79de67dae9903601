// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hooks has the step that runs the UpgradeJobHooks of an event of an upgrade as Jobs (batch/v1), once each, and
// waits for them. The upgrade is data, see maintenance.Owner: an UpgradeJob or an UpgradeConfig.
//
// The hooks of an event are fixed when its first Job is created: each Job lists all of them. The
// name of a Job derives from the attempt, the hook, and the event, so it is created once. A
// finalizer keeps a Job until its result is in the record, so its deletion does not run it again.
// JobRecorded decides when that is; the controller of UpgradeJobHooks removes the finalizer.
//
// The package knows no runbook: which event a step is, and what its failure means to the upgrade
// beyond HookFailed, is decided there.
package hooks
