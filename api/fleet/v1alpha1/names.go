// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Finalizer is on a ClusterUpgradeRun while an attempt of its upgrade is in progress.
const Finalizer = "upgrade.managed.openshift.io/upgrade-in-progress"

// WorksFinalizer is on a ClusterUpgradeRun while a ManifestWork of its cluster contains the
// ClusterVersion. Such a work has no owner reference, because the garbage collector would delete it
// without a check that the ClusterVersion stays.
const WorksFinalizer = "upgrade.managed.openshift.io/works-of-clusterversion"

// UpgradeLabel on a ClusterUpgradeRun is the UID of its ManagedClustersUpgrade.
const UpgradeLabel = fleetv1beta1.UpgradeLabel

// StateField is the field by which ClusterUpgradeRuns can be selected.
const StateField = "status.state"

// The types of the conditions in the status of a ClusterUpgradeRun. See package history.
const (
	ConditionAccepted    = history.ConditionAccepted
	ConditionProgressing = history.ConditionProgressing
	ConditionSucceeded   = history.ConditionSucceeded
	ConditionSlow        = history.ConditionSlow
	ConditionReady       = history.ConditionReady
	ConditionReconciling = history.ConditionReconciling
	ConditionStalled     = history.ConditionStalled
	ConditionDegraded    = history.ConditionDegraded
)

// The reasons of states.
const (
	// ReasonAlreadyAtTarget is a cluster that had the release before it was admitted.
	ReasonAlreadyAtTarget = "AlreadyAtTarget"
	// ReasonNewerVersionInstalled is a cluster that has a newer release than the target.
	ReasonNewerVersionInstalled = "NewerVersionInstalled"
	// ReasonHostedControlPlane is a cluster whose control plane is not upgraded by its
	// ClusterVersion.
	ReasonHostedControlPlane = "HostedControlPlane"
	// ReasonPreActionDegraded is a pre-upgrade action that failed.
	ReasonPreActionDegraded = "PreActionDegraded"
	// ReasonApplyTimedOut is an agent that has not applied the upgrade in time.
	ReasonApplyTimedOut = "ApplyTimedOut"
	// ReasonTargetRefused is a release that the cluster version operator does not accept.
	ReasonTargetRefused = "TargetRefused"
	// ReasonClusterDetached is a cluster that left the hub.
	ReasonClusterDetached = "ClusterDetached"
	// ReasonClusterUpgradeTimedOut is a platform that was not upgraded in time.
	ReasonClusterUpgradeTimedOut = "ClusterUpgradeTimedOut"
	// ReasonClusterVersionFailing is a cluster version operator that reports Failing.
	ReasonClusterVersionFailing = "ClusterVersionFailing"
	// ReasonSuperseded is a release that another one replaced before it was complete.
	ReasonSuperseded = "Superseded"
	// ReasonOperatorsFailed is an upgrade of operators that failed.
	ReasonOperatorsFailed = "OperatorsFailed"
	// ReasonPostActionDegraded is a post-upgrade action that failed.
	ReasonPostActionDegraded = "PostActionDegraded"
	// ReasonUnhealthyDuringSoak is a cluster version operator that reports Failing after the upgrade.
	ReasonUnhealthyDuringSoak = "UnhealthyDuringSoak"
	// ReasonSoakTimedOut is a cluster that was not healthy for long enough in time after the upgrade.
	ReasonSoakTimedOut = "SoakTimedOut"
	// ReasonLateSuccess is a cluster that has failed and whose platform was upgraded later.
	ReasonLateSuccess = "LateSuccess"
	// ReasonLockedBy is a run that waits for the run of another ManagedClustersUpgrade.
	ReasonLockedBy = "LockedBy"
	// ReasonAdmissionWithdrawn is a cluster that was held or locked for too long before anything was requested from it.
	ReasonAdmissionWithdrawn = "AdmissionWithdrawn"
	// ReasonAgentSilent is a cluster whose agent applied nothing although the cluster is available; nothing was requested
	// from it.
	ReasonAgentSilent = "AgentSilent"
	// ReasonUnreachable is a cluster that the hub does not hear of.
	ReasonUnreachable = "Unreachable"
	// ReasonDelivered is a work that is written, and that the agent has not applied.
	ReasonDelivered = "Delivered"
	// ReasonStalled is a cluster that makes no progress.
	ReasonStalled = "Stalled"
)

// The steps of a run, in their order.
const (
	StepPreUpgradeActionAvailable  = "PreUpgradeActionAvailable"
	StepUpgradeDelivered           = "UpgradeDelivered"
	StepClusterUpgraded            = "ClusterUpgraded"
	StepOperatorsUpgraded          = "OperatorsUpgraded"
	StepPostUpgradeActionAvailable = "PostUpgradeActionAvailable"
	StepSoaked                     = "Soaked"
	// StepTargetWithdrawn and StepWorksRemoved clean up.
	StepTargetWithdrawn = "TargetWithdrawn"
	StepWorksRemoved    = "WorksRemoved"
)
