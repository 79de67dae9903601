// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Finalizer is on a ManagedClustersUpgrade from before the first object that it causes until the last
// of them is deleted.
const Finalizer = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// UpgradeLabel on an object that the hub creates is the UID of its ManagedClustersUpgrade.
const UpgradeLabel = "upgrade.managed.openshift.io/managed-clusters-upgrade"

// The defaults of the durations that a strategy does not define. The API server sets those of the
// timeouts if there is a strategy.
const (
	DefaultClusterUpgradeTimeout   Duration = "2h"
	DefaultOperatorsUpgradeTimeout Duration = "10m"
	DefaultApplyTimeout            Duration = "30m"
	DefaultActionTimeout           Duration = "30m"
	DefaultFailingTimeout          Duration = "10m"
	DefaultStallTimeout            Duration = "45m"
	// DefaultCanarySoak is how long canaries soak without minSuccessTime; others do not.
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
	// ConditionStalled reports whether a cluster makes no progress.
	ConditionStalled = "Stalled"
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

// The reasons of the condition Admitting; the condition Failed has CanaryFailed and
// MaxFailuresExceeded, too.
const (
	ReasonOpen                = "Open"
	ReasonNoFreeSlot          = "NoFreeSlot"
	ReasonCanaryNotSelected   = "CanaryNotSelected"
	ReasonCanaryFailed        = "CanaryFailed"
	ReasonMaxFailuresExceeded = "MaxFailuresExceeded"
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

// The reasons of the conditions Stalled and PreflightPassed if nothing is wrong.
const (
	ReasonNotStalled      = "NotStalled"
	ReasonPreflightPassed = "PreflightPassed"
)
