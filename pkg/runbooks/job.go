// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
)

// lockStep is the step of a Job that acquires the lock of the cluster.
const lockStep = "LockAcquired"

// The reasons for which an UpgradeJob ends.
const (
	reasonNoUpdate              = "NoUpdate"
	reasonExpired               = "Expired"
	reasonClusterUnhealthy      = "ClusterUnhealthy"
	reasonInvalidPools          = pools.ReasonInvalidPools
	reasonUnhealthyAfterUpgrade = "UnhealthyAfterUpgrade"
)

// Job upgrades a cluster as an UpgradeJob requests, or runs its hooks only if that names no version.
type Job struct{ Deps }

// Runbook returns the table of the steps of an attempt. Acquire acquires the lock of the cluster.
func (j Job) Runbook(job *v1beta1.UpgradeJob, record history.Record, acquire engine.UpgradeStep) engine.Runbook {
	s := newJobSteps(j.Deps, job, record)
	return engine.Runbook{
		Steps: s.unlessHooksOnly([]engine.Step{
			s.CreateHooksDone(),
			s.StartTimeReached(),
			s.NotSuspended(),
			s.LockAcquired(acquire),
			s.StartedNotificationSent(),
			s.StartHooksDone(),
			s.VersionStillAvailable(),
			s.ClusterUpgradeable(),
			s.PreChecksAccepted(),
			s.PreHealthCheck(),
			s.PoolsPaused(),
			s.UpgradeStartHooksDone(),
			s.UpgradeCommenced(),
			s.UpgradeCompleted(),
			s.UpgradeCompleteHooksDone(),
			s.DelayedPoolsUpdated(),
			s.PostHealthCheck(),
		}),
		Cleanup: []engine.Step{
			s.TargetWithdrawn(),
			s.PoolsPausedOnFailure(),
			s.FailureNotificationSent(),
			s.FailureHooksDone(),
			s.ClusterSettled(),
			s.PoolsReleased(),
		},
		Finally: []engine.Step{
			s.SuccessHooksDone(),
			s.CompletedNotificationSent(),
			s.FinishHooksDone(),
		},
		MissedAs:     reasonExpired,
		SkipReasons:  skipReasons(),
		PauseReasons: []string{pools.ReasonDelaySet, pools.ReasonPausedByUser},

		UncommittedReasons: []string{reasonNoUpdate},
	}
}

// LockStep returns the name of the step that acquires the lock of the cluster.
func (Job) LockStep() string { return lockStep }

// skipReasons are the reasons of a failure before the commit that mean that the upgrade was skipped.
func skipReasons() []string {
	return []string{
		maintenance.ReasonSuspended, maintenance.ReasonRescheduled, engine.ReasonAlreadyAtVersion,
		reasonExpired, controlplane.ReasonUpgradeWithdrawn, reasonClusterUnhealthy, reasonInvalidPools,
		prechecks.ReasonNotAccepted,
	}
}
