// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// OSD upgrades clusters of OpenShift Dedicated.
type OSD struct{ Tools }

// Runbook is the table of the steps.
func (o OSD) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	m := managed(o.Tools, cfg)
	return engine.Runbook{
		Steps: m.tellingDelay(
			m.StartedNotificationSent(),
			m.VersionPinned(),
			m.ClusterUpgradeable(),
			m.PreHealthCheck(),
			m.ExternalDependenciesAvailable(),
			m.ScaleUpExtraNodes(),
			m.ControlPlaneMaintWindow(),
			m.CommenceUpgrade(m.upgradeable),
			m.DelayedNotificationSent(),
			m.ControlPlaneUpgraded(),
			m.RemoveControlPlaneMaintWindow(),
			m.WorkersMaintWindow(),
			m.AllWorkerNodesUpgraded(),
			m.RemoveExtraScaledNodes(),
			m.RemoveMaintWindow(),
			m.PostClusterHealthCheck(),
			m.PostUpgradeProcedures(),
			m.CompletedNotificationSent(),
		),
		Cleanup: m.cleanup(),
		Abandon: m.abandon,
	}
}
