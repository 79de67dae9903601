// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hooks provides the step that runs the UpgradeJobHooks of an event of an upgrade as Jobs
// (batch/v1), once each, and waits for them. It handles UpgradeJobs and UpgradeConfigs alike; see
// maintenance.Owner.
//
// The hooks of an event are fixed when its first Job is created: each Job lists all of them. The
// name of a Job is derived from the attempt, the hook, and the event, so it is only created once. A
// finalizer keeps a Job until its result is in the record, so its deletion does not run the hook
// again. JobRecorded decides when the result is recorded, and the controller of UpgradeJobHooks
// then removes the finalizer.
//
// The package does not know runbooks. They assign events to steps, and decide how a failed step
// affects the upgrade beyond HookFailed.
package hooks
