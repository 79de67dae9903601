// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// OSD upgrades clusters of OpenShift Dedicated.
type OSD struct{ Deps }

// Runbook returns the table of the steps.
func (o OSD) Runbook(attempt Attempt) engine.Runbook {
	s := NewStepSet(o.Deps, attempt)
	return engine.Runbook{
		Admission: s.Admission(),
		Steps: s.WithDelayNotification(
			s.StartedNotificationSent(),
			s.VersionPinned(),
			s.ClusterUpgradeable(),
			s.PreChecksAccepted(),
			s.PreHealthCheck(),
			s.ExternalDependenciesAvailable(),
			s.ScaleUpExtraNodes(),
			s.ControlPlaneMaintWindow(),
			s.CommenceUpgrade(engine.Gate{Name: "ClusterUpgradeable", Check: s.Upgradeable}, controlplane.NotBusy, controlplane.MinorUpdateAllowed),
			s.DelayedNotificationSent(),
			s.ControlPlaneUpgraded(),
			s.RemoveControlPlaneMaintWindow(),
			s.WorkersMaintWindow(),
			s.AllWorkerNodesUpgraded(),
			s.RemoveExtraScaledNodes(),
			s.RemoveMaintWindow(),
			s.PostClusterHealthCheck(),
			s.PostUpgradeProcedures(),
			s.CompletedNotificationSent(),
		),
		Cleanup: s.Cleanup(),
		Abandon: s.Abandon,
	}
}
