// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// Finalizer is on a ClusterUpgradeRun while an attempt of its upgrade is in progress.
const Finalizer = "upgrade.managed.openshift.io/upgrade-in-progress"

// WorksFinalizer is on a ClusterUpgradeRun while a ManifestWork of its cluster contains the ClusterVersion.
// Such a work has no owner reference, because the garbage collector would delete it without making sure
// that the ClusterVersion stays.
const WorksFinalizer = "upgrade.managed.openshift.io/works-of-clusterversion"

// UpgradeLabel on a ClusterUpgradeRun is the UID of its ManagedClustersUpgrade.
const UpgradeLabel = fleetv1beta1.UpgradeLabel

// StateField is the selectable field of ClusterUpgradeRuns.
const StateField = "status.state"

// Condition types of a ClusterUpgradeRun. See package history.
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

// Reasons for states.
const (
	// ReasonAlreadyAtTarget indicates that the cluster had the release before it was admitted.
	ReasonAlreadyAtTarget = "AlreadyAtTarget"
	// ReasonNewerVersionInstalled indicates that the cluster has a newer release than the target.
	ReasonNewerVersionInstalled = "NewerVersionInstalled"
	// ReasonHostedControlPlane indicates that the control plane of the cluster is not upgraded through its
	// ClusterVersion.
	ReasonHostedControlPlane = "HostedControlPlane"
	// ReasonPreActionDegraded indicates that the pre-upgrade action failed.
	ReasonPreActionDegraded = "PreActionDegraded"
	// ReasonApplyTimedOut indicates that the agent did not apply the upgrade in time.
	ReasonApplyTimedOut = "ApplyTimedOut"
	// ReasonTargetRefused indicates that the cluster version operator does not accept the release.
	ReasonTargetRefused = "TargetRefused"
	// ReasonClusterDetached indicates that the cluster left the hub.
	ReasonClusterDetached = "ClusterDetached"
	// ReasonClusterUpgradeTimedOut indicates that the platform was not upgraded in time.
	ReasonClusterUpgradeTimedOut = "ClusterUpgradeTimedOut"
	// ReasonClusterVersionFailing indicates that the cluster version operator reports Failing.
	ReasonClusterVersionFailing = "ClusterVersionFailing"
	// ReasonSuperseded indicates that another release replaced the target before its installation was
	// complete.
	ReasonSuperseded = "Superseded"
	// ReasonOperatorsFailed indicates that the upgrade of operators failed.
	ReasonOperatorsFailed = "OperatorsFailed"
	// ReasonPostActionDegraded indicates that the post-upgrade action failed.
	ReasonPostActionDegraded = "PostActionDegraded"
	// ReasonUnhealthyDuringSoak indicates that the cluster version operator reported Failing after the
	// upgrade.
	ReasonUnhealthyDuringSoak = "UnhealthyDuringSoak"
	// ReasonSoakTimedOut indicates that the cluster did not stay healthy for long enough after the upgrade.
	ReasonSoakTimedOut = "SoakTimedOut"
	// ReasonLateSuccess indicates that the platform of a failed cluster was upgraded later.
	ReasonLateSuccess = "LateSuccess"
	// ReasonLockedBy indicates that the run waits for a run of another ManagedClustersUpgrade.
	ReasonLockedBy = "LockedBy"
	// ReasonAdmissionWithdrawn indicates that the cluster was held or locked for too long before its
	// upgrade was requested.
	ReasonAdmissionWithdrawn = "AdmissionWithdrawn"
	// ReasonAgentSilent indicates that the agent applied nothing although the cluster is available. The
	// upgrade was not requested.
	ReasonAgentSilent = "AgentSilent"
	// ReasonUnreachable indicates that the cluster does not report to the hub.
	ReasonUnreachable = "Unreachable"
	// ReasonDelivered indicates that a work has been written but not yet applied by the agent.
	ReasonDelivered = "Delivered"
	// ReasonStalled indicates that the cluster makes no progress.
	ReasonStalled = "Stalled"
)

// Steps of a run, in order.
const (
	StepPreUpgradeActionAvailable  = "PreUpgradeActionAvailable"
	StepUpgradeDelivered           = "UpgradeDelivered"
	StepClusterUpgraded            = "ClusterUpgraded"
	StepOperatorsUpgraded          = "OperatorsUpgraded"
	StepPostUpgradeActionAvailable = "PostUpgradeActionAvailable"
	StepSoaked                     = "Soaked"
	// StepTargetWithdrawn and StepWorksRemoved are cleanup steps.
	StepTargetWithdrawn = "TargetWithdrawn"
	StepWorksRemoved    = "WorksRemoved"
)
