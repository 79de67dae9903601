// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/managed-upgrade/managed-upgrade-operator/api/history"

// Finalizer is on a ManagedClustersUpgrade from before its first object is created until its last object is
// deleted.
const Finalizer = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// UpgradeLabel on an object created by the hub is the UID of its ManagedClustersUpgrade.
const UpgradeLabel = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// ForgetFailureAnnotation on a ManagedClustersUpgrade has the form cluster@attempt=reason. The failure of
// the cluster in that attempt no longer counts. The attempt defaults to 1. Entries are separated by
// semicolons or line breaks.
const ForgetFailureAnnotation = "upgrade.managed.openshift.io/forget-failure"

// ContinueWithoutCanaryAnnotation on a ManagedClustersUpgrade has the form cluster@attempt=reason. In that
// attempt, other clusters do not wait for this canary. The attempt defaults to 1. Entries are separated by
// semicolons or line breaks.
const ContinueWithoutCanaryAnnotation = "upgrade.managed.openshift.io/continue-without-canary"

// Reasons why a cluster cannot be admitted, in addition to the reasons of a ClusterUpgradeRun.
const (
	// ReasonUnreachable indicates that the cluster does not report to the hub.
	ReasonUnreachable = "Unreachable"
)

// Defaults of the durations in a strategy. If a strategy is set, the API server sets its timeouts.
const (
	DefaultClusterUpgradeTimeout   Duration = "2h"
	DefaultOperatorsUpgradeTimeout Duration = "10m"
	DefaultApplyTimeout            Duration = "30m"
	DefaultActionTimeout           Duration = "30m"
	DefaultFailingTimeout          Duration = "10m"
	DefaultStallTimeout            Duration = "45m"
	// DefaultCanarySoak is the soak time of canaries, and of clusters that failed before, if minSuccessTime
	// is not set. Other clusters do not soak by default.
	DefaultCanarySoak Duration = "30m"
)

// Condition types of a ManagedClustersUpgrade.
const (
	// ConditionSelected reports whether at least one cluster is selected.
	ConditionSelected = "Selected"
	// ConditionApplied reports whether a pre-upgrade action or an upgrade has ever been applied to a
	// cluster.
	ConditionApplied = "Applied"
	// ConditionInProgress reports whether at least one cluster is partially upgraded.
	ConditionInProgress = "InProgress"
	// ConditionComplete reports whether all clusters are complete.
	ConditionComplete = "Complete"
	// ConditionFailed reports whether at least one cluster failed.
	ConditionFailed = "Failed"
	// ConditionAdmitting reports whether another cluster may start.
	ConditionAdmitting = "Admitting"
	// ConditionSlow reports whether any cluster makes no progress.
	ConditionSlow = history.ConditionSlow
	// ConditionReady reports whether all clusters are complete. It is absent before the first cluster
	// starts.
	ConditionReady = history.ConditionReady
	// ConditionReconciling reports that the upgrade continues without user action. It is absent otherwise.
	ConditionReconciling = history.ConditionReconciling
	// ConditionStalled reports that no cluster starts without user action. It is absent otherwise.
	ConditionStalled = history.ConditionStalled
	// ConditionPreflightPassed reports whether a dry run found no obstacles. It is absent without a dry
	// run.
	ConditionPreflightPassed = "PreflightPassed"
)

// Reasons of the condition Selected.
const (
	ReasonManagedClustersSelected = "ManagedClustersSelected"
	ReasonNoClustersSelected      = "NoClustersSelected"
	ReasonPlacementNotFound       = "PlacementNotFound"
	ReasonPlacementNotAllowed     = "PlacementNotAllowed"
)

// Reasons of the conditions Applied, InProgress, Complete, and Failed.
const (
	ReasonManagedClustersUpgradeApplied    = "ManagedClustersUpgradeApplied"
	ReasonNothingApplied                   = "NothingApplied"
	ReasonManagedClustersUpgradeInProgress = "ManagedClustersUpgradeInProgress"
	ReasonNothingInProgress                = "NothingInProgress"
	ReasonManagedClustersUpgradeComplete   = "ManagedClustersUpgradeComplete"
	ReasonClustersPending                  = "ClustersPending"
	ReasonClustersFailed                   = "ClustersFailed"
	ReasonManagedClustersUpgradeFailed     = "ManagedClustersUpgradeFailed"
	ReasonNoFailures                       = "NoFailures"
)

// Reasons of the condition Admitting. The condition Failed also uses CanaryFailed and MaxFailuresExceeded.
const (
	ReasonOpen                = "Open"
	ReasonNoFreeSlot          = "NoFreeSlot"
	ReasonCanaryNotSelected   = "CanaryNotSelected"
	ReasonNoCanary            = "NoCanary"
	ReasonCanaryFailed        = "CanaryFailed"
	ReasonMaxFailuresExceeded = "MaxFailuresExceeded"
	ReasonCanaryNotAvailable  = "CanaryNotAvailable"
	ReasonRecordsLost         = "RecordsLost"
	ReasonFinished            = "Finished"
	ReasonHeld                = "Held"
)

// Reasons of the condition Admitting that prevent admission regardless of the state of the clusters.
const (
	ReasonPaused               = "Paused"
	ReasonCancelled            = "Cancelled"
	ReasonDryRun               = "DryRun"
	ReasonOutsideWindow        = "OutsideWindow"
	ReasonDependencyMissing    = "DependencyMissing"
	ReasonDependencyIncomplete = "DependencyIncomplete"
	ReasonNoOperatorImage      = "NoOperatorImage"
	ReasonSelectionUnstable    = "SelectionUnstable"
	ReasonInvalidStrategy      = "InvalidStrategy"
	ReasonDeleting             = "Deleting"
	// ReasonCannotObserve indicates that the hub could not read the clusters or upgrades needed to decide
	// about admission.
	ReasonCannotObserve = "CannotObserve"
)

// Reasons of the conditions Slow and PreflightPassed if there is no problem.
const (
	ReasonOnTime          = "OnTime"
	ReasonPreflightPassed = "PreflightPassed"
)
