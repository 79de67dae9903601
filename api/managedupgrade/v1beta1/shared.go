// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// The annotations with which users request something. Each value is a token that the user chooses,
// such as a date: another token is another request.
const (
	// RunNowAnnotation on an UpgradeConfig requests an upgrade now. It overrides schedule.suspend,
	// but no UpgradeSuspensionWindow. The answer is status.runNow.
	RunNowAnnotation = "managedupgrade.appuio.io/run-now"
	// RetryAnnotation on an UpgradeJob that has ended requests another attempt, in a window of the
	// same length that starts now. The answer is status.retry.
	RetryAnnotation = "managedupgrade.appuio.io/retry"
	// AcknowledgedAnnotation on an UpgradeJob that has ended resolves its alerts. The answer is the
	// condition Acknowledged.
	AcknowledgedAnnotation = "managedupgrade.appuio.io/acknowledged"
)

// The labels of the UpgradeJobs that an UpgradeConfig creates. The UpgradeConfig is also their controller; UpgradeJobs
// that users create with these labels are not its own.
const (
	// ConfigLabel is the UID of the UpgradeConfig.
	ConfigLabel = "managedupgrade.appuio.io/upgrade-config"
	// SlotLabel is the slot for which the UpgradeJob was created: the scheduled start in seconds
	// since 1970, SlotVersionPrefix and a version for the rhythm UpdateAvailable, with the time since
	// which it is pending if it was scheduled before, or
	// SlotRunNowPrefix and a hash of the token for a request to run an upgrade now.
	SlotLabel = "managedupgrade.appuio.io/slot"

	SlotVersionPrefix = "version-"
	SlotRunNowPrefix  = "run-now-"
)

// Finalizer is on an UpgradeJob while an attempt of its upgrade is in progress.
const Finalizer = "managedupgrade.appuio.io/upgrade-in-progress"

// The phases of an UpgradeJob beside those that every upgrade has.
const (
	// PhasePaused is an upgrade that waits for the machine config pools that it has delayed.
	PhasePaused history.Phase = "Paused"
	// PhaseSkipped is an upgrade that ended before its commit without an error of its own, for
	// example because the cluster was not healthy.
	PhaseSkipped history.Phase = "Skipped"
)

// The types of the conditions in the status of the kinds of this group.
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

	// ConditionScheduled reports whether an UpgradeConfig has a next start that nothing suspends.
	ConditionScheduled = "Scheduled"
	// ConditionSynced reports whether the ClusterVersion of OpenShift has the parameters that a
	// ClusterVersion defines.
	ConditionSynced = "Synced"
	// ConditionPaused reports whether an UpgradeJob waits for machine config pools that are paused.
	ConditionPaused = "Paused"
	// ConditionAcknowledged reports that a user acknowledged the end of an UpgradeJob.
	ConditionAcknowledged = "Acknowledged"
)

// MaxTokenLength is the length of the longest token in a status, in bytes. The status shows the
// SHA-256 hash of a longer one.
const MaxTokenLength = 64
