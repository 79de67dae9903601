// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/managed-upgrade/managed-upgrade-operator/api/history"

// Finalizer is on a ManagedClustersUpgrade from before the first object that it causes until the last
// of them is deleted.
const Finalizer = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// UpgradeLabel on an object that the hub creates is the UID of its ManagedClustersUpgrade.
const UpgradeLabel = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// ForgetFailureAnnotation on a ManagedClustersUpgrade has the form cluster@attempt=reason. The failure of the cluster in
// that attempt, 1 by default, no longer counts. Several clusters are separated by semicolons or line breaks.
const ForgetFailureAnnotation = "upgrade.managed.openshift.io/forget-failure"

// ContinueWithoutCanaryAnnotation on a ManagedClustersUpgrade has the form cluster@attempt=reason. In that attempt, 1 by
// default, the other clusters do not wait for this canary. Several canaries are separated by semicolons or line breaks.
const ContinueWithoutCanaryAnnotation = "upgrade.managed.openshift.io/continue-without-canary"

// The reasons for which a cluster cannot be admitted, in addition to the reasons of a ClusterUpgradeRun.
const (
	// ReasonUnreachable is a cluster that does not report to the hub.
	ReasonUnreachable = "Unreachable"
)

// The defaults of the durations that a strategy does not define. The API server sets the default timeouts if there is a
// strategy.
const (
	DefaultClusterUpgradeTimeout   Duration = "2h"
	DefaultOperatorsUpgradeTimeout Duration = "10m"
	DefaultApplyTimeout            Duration = "30m"
	DefaultActionTimeout           Duration = "30m"
	DefaultFailingTimeout          Duration = "10m"
	DefaultStallTimeout            Duration = "45m"
	// DefaultCanarySoak is how long canaries, and clusters that failed before, soak without minSuccessTime; others
	// do not.
	DefaultCanarySoak Duration = "30m"
)

// The types of the conditions of a ManagedClustersUpgrade.
const (
	// ConditionSelected reports whether at least one cluster is selected.
	ConditionSelected = "Selected"
	// ConditionApplied reports whether a pre-upgrade action or an upgrade was ever applied to a
	// cluster.
	ConditionApplied = "Applied"
	// ConditionInProgress reports whether the upgrade of at least one cluster is partial.
	ConditionInProgress = "InProgress"
	// ConditionComplete reports whether all clusters are complete.
	ConditionComplete = "Complete"
	// ConditionFailed reports whether at least one cluster failed.
	ConditionFailed = "Failed"
	// ConditionAdmitting reports whether another cluster may start.
	ConditionAdmitting = "Admitting"
	// ConditionSlow reports whether a cluster makes no progress.
	ConditionSlow = history.ConditionSlow
	// ConditionReady reports whether all clusters are complete. It is absent before the first one begins.
	ConditionReady = history.ConditionReady
	// ConditionReconciling reports that the upgrade continues without a person. It is absent otherwise.
	ConditionReconciling = history.ConditionReconciling
	// ConditionStalled reports that no cluster begins until a person acts. It is absent otherwise.
	ConditionStalled = history.ConditionStalled
	// ConditionPreflightPassed reports whether a dry run found no obstacle. It is absent without one.
	ConditionPreflightPassed = "PreflightPassed"
)

// The reasons of the condition Selected.
const (
	ReasonManagedClustersSelected = "ManagedClustersSelected"
	ReasonNoClustersSelected      = "NoClustersSelected"
	ReasonPlacementNotFound       = "PlacementNotFound"
	ReasonPlacementNotAllowed     = "PlacementNotAllowed"
)

// The reasons of the conditions Applied, InProgress, Complete, and Failed.
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

// The reasons of the condition Admitting. The condition Failed also has CanaryFailed and MaxFailuresExceeded.
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

// The reasons of the condition Admitting for which nothing is admitted, whatever the state of the
// clusters.
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
	// ReasonCannotObserve means that the hub could not read the clusters or the upgrades that decide about
	// admission.
	ReasonCannotObserve = "CannotObserve"
)

// The reasons of the conditions Slow and PreflightPassed if nothing is wrong.
const (
	ReasonOnTime          = "OnTime"
	ReasonPreflightPassed = "PreflightPassed"
)
