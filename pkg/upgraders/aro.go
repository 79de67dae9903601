// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// ARO upgrades clusters of Azure Red Hat OpenShift like OSD, with three exceptions: another system decides
// whether a cluster may be upgraded to its next minor version, delays are not notified, and there are no
// procedures after the upgrade.
type ARO struct{ Deps }

// Runbook returns the table of the steps.
func (a ARO) Runbook(attempt Attempt) engine.Runbook {
	s := NewStepSet(a.Deps, attempt)
	return engine.Runbook{
		Admission: s.Admission(),
		Steps: []engine.Step{
			s.StartedNotificationSent(),
			s.VersionPinned(),
			s.PreChecksAccepted(),
			s.PreHealthCheck(),
			s.ExternalDependenciesAvailable(),
			s.ScaleUpExtraNodes(),
			s.ControlPlaneMaintWindow(),
			s.CommenceUpgrade(engine.Gate{Name: "NoOtherUpdate", Check: s.NoOtherUpdate}, controlplane.NotBusy),
			s.ControlPlaneUpgraded(),
			s.RemoveControlPlaneMaintWindow(),
			s.WorkersMaintWindow(),
			s.AllWorkerNodesUpgraded(),
			s.RemoveExtraScaledNodes(),
			s.RemoveMaintWindow(),
			s.PostClusterHealthCheck(),
			s.CompletedNotificationSent(),
		},
		Cleanup: s.Cleanup(),
		Abandon: s.Abandon,
	}
}
