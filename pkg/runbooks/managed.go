// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"context"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/dependencies"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/gate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/procedures"
)

// steps are the lines of the tables of managed clusters, for one UpgradeConfig:
// each method is one line, named for its step.
type steps struct {
	Tools

	to    cluster.Target
	about about

	offered, undisturbed, upgradeable, healthy, ours engine.UpgradeStep

	controlPlane, workers maintenance.Window
}

func managed(t Tools, cfg *v1alpha1.UpgradeConfig) steps {
	s := steps{Tools: t, to: target(cfg), about: t.about(cfg)}
	s.offered = controlplane.Offered(t.Client, s.to)
	s.undisturbed = controlplane.Undisturbed(t.Client, s.to)
	s.upgradeable = controlplane.Upgradeable(t.Client, s.to)
	s.healthy = gate.Healthy(t.Client, "ClusterUnhealthy", t.Alerts, t.unforced())
	s.ours = controlplane.StillOurs(t.Client, t.Live, s.to)

	m := t.Config.Maintenance
	noise := maintenance.Scope{Severities: m.Severities, Namespaces: m.Namespaces}
	s.workers = t.Silencer.Window(s.about.subject(), "Workers", noise, t.leases())
	noise.Alerts = m.ControlPlaneAlerts
	s.controlPlane = t.Silencer.Window(s.about.subject(), "ControlPlane", noise, t.leases())
	return s
}

func (t Tools) leases() maintenance.Settings {
	return maintenance.Settings{Lease: t.Config.Maintenance.Lease.Duration, Patience: t.Config.Maintenance.Patience.Duration}
}

// unforced are the namespaces in which nothing ever forces a drain.
func (t Tools) unforced() []string { return t.Config.NodeDrain.IgnoreNamespaces }

// tellingDelay has the steps up to the committing one tell, once, that the
// upgrade takes long to commence.
func (s steps) tellingDelay(table ...engine.Step) []engine.Step {
	for i := range table {
		table[i].Do = engine.Keeping(table[i].Do, notify.Delayed(s.Notifier, s.about.late, s.about.delayed()))
		if table[i].Commits {
			break
		}
	}
	return table
}

// StartedNotificationSent is the first step.
func (s steps) StartedNotificationSent() engine.Step {
	return engine.Step{
		Name: "StartedNotificationSent",
		Doc:  "Tells that the upgrade begins.",
		Do:   s.about.sent("UpgradeStarted", "the upgrade to %s begins"),
	}
}

// VersionPinned makes the version one that is offered.
func (s steps) VersionPinned() engine.Step {
	return engine.Step{
		Name:  "VersionPinned",
		Doc:   "Sets the channel and waits until the version is offered.",
		Do:    controlplane.Pinned(s.Client, s.to),
		Early: controlplane.Offerable(s.Client, s.to),
	}
}

// ClusterUpgradeable asks whether the cluster may be upgraded.
func (s steps) ClusterUpgradeable() engine.Step {
	return engine.Step{
		Name:  "ClusterUpgradeable",
		Doc:   "Waits until no other update is in progress and the cluster says that it is upgradeable.",
		Do:    s.upgradeable,
		Early: s.upgradeable,
	}
}

// PreHealthCheck asks whether the cluster is fit for an upgrade.
func (s steps) PreHealthCheck() engine.Step {
	return engine.Step{
		Name:  "PreHealthCheck",
		Doc:   "Waits until operators, machine config pools and nodes are healthy, no disruption budget of the platform blocks a drain and no critical alert fires.",
		Do:    s.healthy,
		Early: gate.LooksHealthy(s.Client, "ClusterUnhealthy", s.Alerts, s.unforced()),
	}
}

// ExternalDependenciesAvailable asks for what the upgrade needs from elsewhere.
func (s steps) ExternalDependenciesAvailable() engine.Step {
	available := dependencies.Available(s.Dependencies)
	return engine.Step{
		Name:  "ExternalDependenciesAvailable",
		Doc:   "Waits until what the upgrade needs outside of the cluster can be reached.",
		Do:    available,
		Early: available,
	}
}

// ScaleUpExtraNodes adds nodes, if that is asked for.
func (s steps) ScaleUpExtraNodes() engine.Step {
	return engine.Step{
		Name: "ScaleUpExtraNodes",
		Doc:  "Adds a node beside each MachineSet of workers, if spec.capacityReservation asks for it. It goes on without those that do not come in time.",
		Do:   s.ExtraNodes.Added(s.about.subject(), s.about.reserves(), s.Config.Scale.Timeout.Duration),
	}
}

// ControlPlaneMaintWindow opens the first maintenance window.
func (s steps) ControlPlaneMaintWindow() engine.Step {
	return engine.Step{
		Name: "ControlPlaneMaintWindow",
		Doc:  "Silences the alerts that are noise while the control plane is upgraded. It goes on without if Alertmanager cannot be reached.",
		Do:   s.controlPlane.Opened(),
	}
}

// CommenceUpgrade is the point of no return. What is asked beforehand of other
// updates is asked again in the very pass in which it acts, as are all gates.
func (s steps) CommenceUpgrade(free engine.UpgradeStep) engine.Step {
	request := engine.Guarded(controlplane.Request(s.Client, s.to), s.offered, free, s.healthy)
	return engine.Step{
		Name:    "CommenceUpgrade",
		Doc:     "Asks the cluster version operator for the version and waits until it has begun.",
		Do:      engine.Keeping(engine.First(controlplane.Accepted(s.Client, s.to), request), s.controlPlane.Kept()),
		Reached: controlplane.Commenced(s.Client, s.Live, s.to),
		Commits: true,
		FailsAs: []string{"TargetRefused"},
	}
}

// DelayedNotificationSent is whether people were told of a delay.
func (s steps) DelayedNotificationSent() engine.Step {
	return engine.Step{
		Name: "DelayedNotificationSent",
		Doc:  "Tells, already while the steps above wait, that the upgrade takes long to commence.",
		Do:   notify.DelayedSent(s.Notifier, s.about.late, s.about.delayed()),
	}
}

// ControlPlaneUpgraded is the longest wait.
func (s steps) ControlPlaneUpgraded() engine.Step {
	return engine.Step{
		Name:      "ControlPlaneUpgraded",
		Doc:       "Waits until the control plane is at the version.",
		Do:        engine.Keeping(controlplane.Upgraded(s.Client, s.Live, s.to), s.controlPlane.Kept()),
		Reached:   controlplane.HasUpgraded(s.Client, s.to),
		SlowAfter: s.Config.ControlPlane.SlowAfter.Duration,
	}
}

// RemoveControlPlaneMaintWindow closes the first maintenance window.
func (s steps) RemoveControlPlaneMaintWindow() engine.Step {
	return engine.Step{
		Name: "RemoveControlPlaneMaintWindow",
		Doc:  "Ends the silences of the control plane's upgrade.",
		Do:   s.controlPlane.Ended(),
	}
}

// WorkersMaintWindow opens the second maintenance window.
func (s steps) WorkersMaintWindow() engine.Step {
	return engine.Step{
		Name: "WorkersMaintWindow",
		Doc:  "Silences the alerts that are noise while the worker nodes are upgraded. It goes on without if Alertmanager cannot be reached.",
		Do:   s.workers.Opened(),
	}
}

// AllWorkerNodesUpgraded waits for the nodes.
func (s steps) AllWorkerNodesUpgraded() engine.Step {
	return engine.Step{
		Name:      "AllWorkerNodesUpgraded",
		Doc:       "Waits until all machine config pools are at the version.",
		Do:        engine.Keeping(engine.Guarded(pools.Updated(s.Client), s.ours), s.workers.Kept()),
		Reached:   pools.AllUpdated(s.Client),
		SlowAfter: s.Config.Workers.SlowAfter.Duration,
	}
}

// RemoveExtraScaledNodes removes the nodes that were added.
func (s steps) RemoveExtraScaledNodes() engine.Step {
	return engine.Step{
		Name:      "RemoveExtraScaledNodes",
		Doc:       "Removes the extra nodes and waits until they are gone.",
		Do:        engine.Keeping(s.ExtraNodes.Removed(), s.workers.Kept()),
		SlowAfter: s.Config.Scale.Timeout.Duration,
	}
}

// RemoveMaintWindow closes the second maintenance window.
func (s steps) RemoveMaintWindow() engine.Step {
	return engine.Step{
		Name: "RemoveMaintWindow",
		Doc:  "Ends the silences of the worker nodes' upgrade.",
		Do:   s.workers.Ended(),
	}
}

// PostClusterHealthCheck asks whether the upgrade did the cluster good.
func (s steps) PostClusterHealthCheck() engine.Step {
	return engine.Step{
		Name:      "PostClusterHealthCheck",
		Doc:       "Waits until operators, machine config pools and nodes are healthy again, no disruption budget of the platform blocks a drain and no critical alert fires.",
		Do:        engine.Guarded(gate.Healthy(s.Client, "UnhealthyAfterUpgrade", s.Alerts, s.unforced()), s.ours),
		Reached:   gate.IsHealthy(s.Client, s.Alerts, s.unforced()),
		FailAfter: s.Config.PostHealthCheck.Timeout.Duration,
		FailsAs:   []string{"UnhealthyAfterUpgrade"},
	}
}

// PostUpgradeProcedures is what is left to do.
func (s steps) PostUpgradeProcedures() engine.Step {
	on := procedures.Cluster{Live: s.Live, Writer: s.Client}
	return engine.Step{
		Name: "PostUpgradeProcedures",
		Doc:  "Carries out the procedures that are configured. It goes on without what cannot be done.",
		Do:   procedures.Done(on, s.about.unique(), s.Config.PostUpgrade.Procedures),
	}
}

// CompletedNotificationSent is the last step.
func (s steps) CompletedNotificationSent() engine.Step {
	return engine.Step{
		Name: "CompletedNotificationSent",
		Doc:  "Tells that the upgrade is complete.",
		Do:   s.about.sent("UpgradeCompleted", "the upgrade to %s is complete"),
	}
}

// cleanup is what is done instead of the rest once an upgrade is given up.
func (s steps) cleanup() []engine.Step {
	return []engine.Step{
		{
			Name: "TargetWithdrawn",
			Doc:  "Takes back what the cluster version operator was asked for, if it has not begun with it. The channel stays.",
			Do:   controlplane.Withdrawn(s.Client, s.to),
		},
		{
			Name:      "ClusterSettled",
			Doc:       "Waits until nothing is being installed any more, if the upgrade had commenced.",
			Do:        controlplane.Settled(s.Client, s.to),
			FailAfter: s.Config.Cleanup.SettleTimeout.Duration,
		},
		{
			Name: "SilencesEnded",
			Doc:  "Ends what is left of the upgrade's silences.",
			Do:   s.Silencer.AllEnded(s.about.subject(), s.leases()),
		},
		{
			Name: "ExtraNodesRemoved",
			Doc:  "Removes the extra nodes. It goes on when that takes long; they are removed all the same.",
			Do:   s.ExtraNodes.AllRemoved(s.Config.Scale.Timeout.Duration),
		},
		{
			Name: "FailureNotificationSent",
			Doc:  "Tells that the upgrade has failed or was cancelled, and why.",
			Do:   s.about.ended,
		},
	}
}

// abandon takes back what would be left behind by an upgrade that is let go of:
// nobody watches the cluster any more in place of those whom alerts wake.
func (s steps) abandon(ctx context.Context) error {
	s.Silencer.Abandoned(ctx, s.about.subject())
	return s.ExtraNodes.Abandoned(ctx)
}
