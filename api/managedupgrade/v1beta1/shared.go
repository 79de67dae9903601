// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Annotations for user requests. Each value is a token chosen by the user, such as a date; a new token is a
// new request.
const (
	// RunNowAnnotation on an UpgradeConfig requests an upgrade now. It overrides schedule.suspend but not
	// an UpgradeSuspensionWindow. The result is in status.runNow.
	RunNowAnnotation = "managedupgrade.appuio.io/run-now"
	// RetryAnnotation on a finished UpgradeJob requests another attempt, in a window of the same length
	// that starts now. The result is in status.retry.
	RetryAnnotation = "managedupgrade.appuio.io/retry"
	// AcknowledgedAnnotation on a finished UpgradeJob resolves its alerts and sets the condition
	// Acknowledged.
	AcknowledgedAnnotation = "managedupgrade.appuio.io/acknowledged"
)

// Labels of the UpgradeJobs created by an UpgradeConfig, which is also their controller. UpgradeJobs that
// users create with these labels do not belong to it.
const (
	// ConfigLabel is the UID of the UpgradeConfig.
	ConfigLabel = "managedupgrade.appuio.io/upgrade-config"
	// SlotLabel identifies the slot for which the UpgradeJob was created: the scheduled start in seconds
	// since 1970; SlotVersionPrefix and a version for the rhythm UpdateAvailable, plus the time since which
	// the version is pending if it was scheduled before; or SlotRunNowPrefix and a hash of the token for a
	// request to run an upgrade now.
	SlotLabel = "managedupgrade.appuio.io/slot"

	SlotVersionPrefix = "version-"
	SlotRunNowPrefix  = "run-now-"
)

// Finalizer is on an UpgradeJob while an attempt of its upgrade is in progress.
const Finalizer = "managedupgrade.appuio.io/upgrade-in-progress"

// Phases of an UpgradeJob, in addition to the phases of every upgrade.
const (
	// PhaseSkipped is the phase of an upgrade that ended before its commit for a reason other than an error
	// of its own, for example because the cluster was not healthy.
	PhaseSkipped history.Phase = "Skipped"
)

// Condition types of the kinds in this group.
const (
	ConditionAccepted       = history.ConditionAccepted
	ConditionProgressing    = history.ConditionProgressing
	ConditionSucceeded      = history.ConditionSucceeded
	ConditionSlow           = history.ConditionSlow
	ConditionReady          = history.ConditionReady
	ConditionReconciling    = history.ConditionReconciling
	ConditionStalled        = history.ConditionStalled
	ConditionPreCheckPassed = history.ConditionPreCheckPassed
	ConditionDegraded       = history.ConditionDegraded

	// ConditionScheduled reports whether an UpgradeConfig has a next start that is not suspended.
	ConditionScheduled = "Scheduled"
	// ConditionSynced reports whether OpenShift's ClusterVersion has the fields defined by a
	// ClusterVersion.
	ConditionSynced = "Synced"
	// ConditionPaused reports whether an UpgradeJob is waiting for paused machine config pools.
	ConditionPaused = "Paused"
	// ConditionAcknowledged reports that a user acknowledged the end of an UpgradeJob.
	ConditionAcknowledged = "Acknowledged"
)

// MaxTokenLength is the maximum length in bytes of a token in a status. Longer tokens are shown as their
// SHA-256 hash.
const MaxTokenLength = 64
