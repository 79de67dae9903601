// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
)

// lockStep is the step of a Job that acquires the lock of the cluster.
const lockStep = "LockAcquired"

// The reasons why an UpgradeJob ends.
const (
	reasonExpired               = maintenance.ReasonExpired
	reasonClusterUnhealthy      = "ClusterUnhealthy"
	reasonInvalidPools          = pools.ReasonInvalidPools
	reasonUnhealthyAfterUpgrade = "UnhealthyAfterUpgrade"
)

// Job upgrades a cluster for an UpgradeJob. If the UpgradeJob names no version, Job only runs its hooks.
type Job struct{ Deps }

// Runbook returns the table of the steps of an attempt.
func (j Job) Runbook(attempt Attempt) engine.Runbook {
	s := newJobSteps(j.Deps, attempt.job(), attempt.Record)
	return engine.Runbook{
		Admission: []engine.Gate{installedVersionKnown(s.Deps)},
		Steps: s.unlessHooksOnly(s.unlessResumed([]engine.Step{
			s.CreateHooksDone(),
			s.StartTimeReached(),
			s.NotSuspended(),
			s.LockAcquired(attempt.acquire()),
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
		})),
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
		PauseReasons: pauseReasons(),
	}
}

// skipReasons are the reasons that skip an upgrade before the commit.
func skipReasons() []string {
	return []string{
		maintenance.ReasonSuspended, maintenance.ReasonRescheduled, engine.ReasonAlreadyAtVersion,
		reasonExpired, controlplane.ReasonUpgradeWithdrawn, reasonClusterUnhealthy, reasonInvalidPools, pools.ReasonUnpausingPoolsExpired,
		prechecks.ReasonNotAccepted,
	}
}
