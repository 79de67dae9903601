// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/dependencies"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/gate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// OSD upgrades clusters of OpenShift Dedicated.
type OSD struct {
	Client       client.Client // reads from the cache, writes to the API server
	Live         client.Reader // reads from the API server
	Notifier     notify.Notifier
	Alerts       *gate.Alerts
	Dependencies *dependencies.Dependencies
	Config       config.Config
}

// Runbook is the table of the steps.
func (o OSD) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	c, live, to, about := o.Client, o.Live, target(cfg), o.about(cfg)
	offered, upgradeable, healthy := controlplane.Offered(c, to), controlplane.Upgradeable(c, to), gate.Healthy(c, "ClusterUnhealthy", o.Alerts)
	ours := controlplane.StillOurs(c, live, to)

	return engine.Runbook{
		Steps: []engine.Step{
			{
				Name: "StartedNotificationSent",
				Doc:  "Tells that the upgrade begins.",
				Do:   about.sent("UpgradeStarted", "the upgrade to %s begins"),
			},
			{
				Name: "VersionPinned",
				Doc:  "Sets the channel and waits until the version is offered.",
				Do:   controlplane.Pinned(c, to),
			},
			{
				Name: "ClusterUpgradeable",
				Doc:  "Waits until no other update is in progress and the cluster says that it is upgradeable.",
				Do:   upgradeable,
			},
			{
				Name: "PreHealthCheck",
				Doc:  "Waits until operators, machine config pools and nodes are healthy and no critical alert fires.",
				Do:   healthy,
			},
			{
				Name: "ExternalDependenciesAvailable",
				Doc:  "Waits until what the upgrade needs outside of the cluster can be reached.",
				Do:   dependencies.Available(o.Dependencies),
			},
			{
				Name:    "CommenceUpgrade",
				Doc:     "Asks the cluster version operator for the version and waits until it has begun.",
				Do:      engine.First(controlplane.Accepted(c, to), engine.Guarded(controlplane.Request(c, to), offered, upgradeable, healthy)),
				Reached: controlplane.Commenced(c, live, to),
				Commits: true,
				FailsAs: []string{"TargetRefused"},
			},
			{
				Name:      "ControlPlaneUpgraded",
				Doc:       "Waits until the control plane is at the version.",
				Do:        controlplane.Upgraded(c, live, to),
				Reached:   controlplane.HasUpgraded(c, to),
				SlowAfter: o.Config.ControlPlane.SlowAfter.Duration,
			},
			{
				Name:      "AllWorkerNodesUpgraded",
				Doc:       "Waits until all machine config pools are at the version.",
				Do:        engine.Guarded(pools.Updated(c), ours),
				Reached:   pools.AllUpdated(c),
				SlowAfter: o.Config.Workers.SlowAfter.Duration,
			},
			{
				Name:      "PostClusterHealthCheck",
				Doc:       "Waits until operators, machine config pools and nodes are healthy again and no critical alert fires.",
				Do:        engine.Guarded(gate.Healthy(c, "UnhealthyAfterUpgrade", o.Alerts), ours),
				Reached:   gate.IsHealthy(c, o.Alerts),
				FailAfter: o.Config.PostHealthCheck.Timeout.Duration,
				FailsAs:   []string{"UnhealthyAfterUpgrade"},
			},
			{
				Name: "CompletedNotificationSent",
				Doc:  "Tells that the upgrade is complete.",
				Do:   about.sent("UpgradeCompleted", "the upgrade to %s is complete"),
			},
		},
		Cleanup: []engine.Step{
			{
				Name: "TargetWithdrawn",
				Doc:  "Takes back what the cluster version operator was asked for, if it has not begun with it.",
				Do:   controlplane.Withdrawn(c, to),
			},
			{
				Name:      "ClusterSettled",
				Doc:       "Waits until nothing is being installed any more, if the upgrade had commenced.",
				Do:        controlplane.Settled(c, to),
				FailAfter: o.Config.Cleanup.SettleTimeout.Duration,
			},
			{
				Name: "FailureNotificationSent",
				Doc:  "Tells that the upgrade has failed or was cancelled, and why.",
				Do:   about.ended,
			},
		},
	}
}
