// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// night delays the machine config pools with the label maintenance=night: they are resumed 9 to 10
// hours after spec.upgradeAt.
var night = pools.Delay{Selector: labels.SelectorFromSet(labels.Set{"maintenance": "night"}), Min: 9 * time.Hour, Max: 10 * time.Hour}

// upgradeTimeout is the maximum time from spec.upgradeAt until an upgrade is complete.
const upgradeTimeout = 14 * time.Hour

// nightly upgrades UpgradeConfigs of type NIGHTLY with its own runbook: the nodes of some pools are
// updated at night, and UpgradeJobHooks of kind UpgradeConfig run.
type nightly struct{ upgraders.Deps }

// Runbook returns the steps.
func (n nightly) Runbook(attempt upgraders.Attempt) engine.Runbook {
	s := upgraders.NewStepSet(n.Deps, attempt).WithDelayedPools(upgradeTimeout, night)
	return engine.Runbook{
		Admission: s.Admission(),
		Steps: []engine.Step{
			s.StartedNotificationSent(),
			s.StartHooksDone(),
			s.VersionPinned(),
			s.ClusterUpgradeable(),
			s.PreChecksAccepted(),
			s.PreHealthCheck(),
			s.PoolsPaused(),
			s.UpgradeStartHooksDone(),
			s.CommenceUpgrade(engine.Gate{Name: "ClusterUpgradeable", Check: s.Upgradeable}, controlplane.NotBusy, controlplane.MinorUpdateAllowed),
			s.ControlPlaneUpgraded(),
			s.UpgradeCompleteHooksDone(),
			s.DelayedPoolsUpdated(),
			s.PostClusterHealthCheck(),
			s.CompletedNotificationSent(),
		},
		Cleanup:      append(s.Cleanup(), s.FailureHooksDone()),
		Finally:      []engine.Step{s.SuccessHooksDone(), s.FinishHooksDone()},
		PauseReasons: s.PauseReasons(),
		Abandon:      s.Abandon,
	}
}
