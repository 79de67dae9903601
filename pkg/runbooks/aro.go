// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// ARO upgrades clusters of Azure Red Hat OpenShift: as OSD does, but whether a
// cluster may be taken to its next minor version is decided elsewhere, nobody
// is told of a delay, and there are no procedures afterwards.
type ARO struct{ Tools }

// Runbook is the table of the steps.
func (a ARO) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	m := managed(a.Tools, cfg)
	return engine.Runbook{
		Steps: []engine.Step{
			m.StartedNotificationSent(),
			m.VersionPinned(),
			m.PreHealthCheck(),
			m.ExternalDependenciesAvailable(),
			m.ScaleUpExtraNodes(),
			m.ControlPlaneMaintWindow(),
			m.CommenceUpgrade(m.undisturbed),
			m.ControlPlaneUpgraded(),
			m.RemoveControlPlaneMaintWindow(),
			m.WorkersMaintWindow(),
			m.AllWorkerNodesUpgraded(),
			m.RemoveExtraScaledNodes(),
			m.RemoveMaintWindow(),
			m.PostClusterHealthCheck(),
			m.CompletedNotificationSent(),
		},
		Cleanup: m.cleanup(),
		Abandon: m.abandon,
	}
}
