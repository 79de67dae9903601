// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/approval"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/postupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// StepSet has the lines of the tables of managed clusters, for one UpgradeConfig, including delays of machine
// config pools and hooks. Each method returns one line and is named for its step. Tables of other projects
// combine these lines with their own.
type StepSet struct {
	base

	attempt attempt

	// NoOtherUpdate and Upgradeable are gates of CommenceUpgrade. A table has one of them.
	NoOtherUpdate, Upgradeable engine.UpgradeStep

	updateAvailable, healthy engine.UpgradeStep

	channel engine.KeepAlive // of the steps between VersionPinned and the commit

	plan prechecks.PlanSteps

	controlPlane, workers silence.Window
}

// NewStepSet returns the lines for an attempt at an UpgradeConfig.
func NewStepSet(t Deps, of Attempt) StepSet {
	cfg := of.config()
	s := StepSet{base: t.newBase(maintenance.ConfigOwners().Owner(cfg, of.Record), of.Record, target(cfg)), attempt: t.newAttempt(of)}
	s.announcer, s.start, s.delaySource, s.drains = s.attempt.announcer, configStart(of), "the delays of the upgrader", t.drainsWithin(PDBTimeout(cfg))
	s.updateAvailable = controlplane.UpdateAvailable(t.Client, s.target, s.attempt.record.Channels)
	s.channel = engine.KeepAlive{Name: "Channel", Renew: controlplane.KeepChannel(t.Client, s.target, s.attempt.record.Channels)}
	s.NoOtherUpdate = controlplane.NoOtherUpdate(t.Client, s.target)
	s.Upgradeable = controlplane.Upgradeable(t.Client, s.target)
	s.plan = t.updatePlan(s.target)
	s.healthy = health.WaitUntilHealthy(s.preHealthChecks(), "ClusterUnhealthy")

	m := t.Config.Silences
	silenceScope := silence.Scope{Severities: m.Severities, Namespaces: m.Namespaces}
	s.workers = t.Silencer.Window(s.attempt.ref(), "Workers", silenceScope, t.silenceSettings())
	silenceScope.Alerts = m.ControlPlaneAlerts
	s.controlPlane = t.Silencer.Window(s.attempt.ref(), "ControlPlane", silenceScope, t.silenceSettings())
	return s
}

// configStart returns when the window of an attempt at an UpgradeConfig opens.
func configStart(of Attempt) time.Time {
	if at := of.Record.UpgradeAt; at != nil {
		return at.Time
	}
	start, err := maintenance.UpgradeStart(of.config())
	if err != nil {
		return time.Time{} // such an UpgradeConfig never starts
	}
	return start
}

// WithDelayedPools returns the lines of an upgrade that delays machine config pools: PoolsPaused pauses them,
// and DelayedPoolsUpdated unpauses them. The delays and the timeout of the upgrade start with its window. The
// other lines tolerate delayed pools, and unpause them in time while they wait. The delays must be the same for
// every attempt.
func (s StepSet) WithDelayedPools(timeout time.Duration, delays ...pools.Delay) StepSet {
	if s.delays = delays; !s.start.IsZero() {
		s.failBy = s.start.Add(timeout)
	}
	s.healthy = health.WaitUntilHealthy(s.preHealthChecks(), "ClusterUnhealthy")
	return s
}

// PauseReasons are the reasons that pause an upgrade with delayed pools: it can only wait for the time of a
// pool, or for a user to unpause one.
func (s StepSet) PauseReasons() []string { return pauseReasons() }

func (t Deps) silenceSettings() silence.Settings {
	return silence.Settings{Lease: t.Config.Silences.Lease.Duration, Timeout: t.Config.Silences.Timeout.Duration}
}

// updatePlan is the UpdatePlan of a version. The configuration decides whether an upgrade requires it.
func (t Deps) updatePlan(target clusterstate.Target) prechecks.PlanSteps {
	plan := prechecks.PlanSteps{Client: t.Client, Target: target, Required: t.Config.PreChecks.Mode == config.PreChecksRequire}
	if t.Sources != nil {
		plan.Clock = t.Sources.Clock
	}
	return plan
}

// preChecksStillAccepted is the gate of the steps behind PreChecksAccepted that depend on the plan. An accepted
// finding blocks them again once the analysis is an hour old. They then report its age, not the finding.
func preChecksStillAccepted(plan prechecks.PlanSteps) engine.Gate {
	return engine.Gate{Name: "PreChecksAccepted", Check: plan.CheckAccepted()}
}

// keepAnalyzed requests the analysis of a plan while the steps behind PreChecksAccepted that depend on it wait.
func keepAnalyzed(plan prechecks.PlanSteps) engine.KeepAlive {
	return engine.KeepAlive{Name: "Analysis", Renew: plan.KeepAnalyzed()}
}

// preHealthChecks are the checks before an upgrade. Findings accepted in its UpdatePlan do not block.
func (s StepSet) preHealthChecks() checks.Runner {
	runner := s.healthChecks()
	runner.Accepted = s.plan.Accepted
	return runner
}

// healthChecks are the checks of an upgrade.
func (s StepSet) healthChecks() checks.Runner {
	alerts, health := s.Config.Alerts, s.Config.HealthCheck
	var objects []checks.ObjectCheck
	for i := range health.Objects {
		objects = append(objects, checks.ObjectCheck(health.Objects[i]))
	}
	return checks.Runner{Reader: s.Client, Live: s.Live, Sources: s.Sources, Options: checks.GateOptions{
		Objects:            objects,
		IgnoreDelayedPools: len(s.delays) > 0,
		AlertNamespaces:    alerts.Namespaces, ExcludeNamespaces: alerts.IgnoreNamespaces, ExcludeAlerts: alerts.IgnoreAlerts,
		ExcludeNodes: health.IgnoreNodes, PDBNamespaces: health.PDBNamespaces, ExcludePDBs: health.IgnorePDBs,
	}}
}

// postHealthChecks are the checks after an upgrade. Pending alerts also count, because a Prometheus that
// restarts starts the waiting time of each alert anew.
func (s StepSet) postHealthChecks() checks.Runner {
	runner := s.healthChecks()
	runner.Options.PendingAlerts = true
	return runner
}

// drainsWithin explains what holds the drains of nodes. nodekeeper forces pods by the same deadlines, and the
// deadline of pods with a PodDisruptionBudget depends on the upgrade.
func (t Deps) drainsWithin(pdbTimeout time.Duration) checks.Drains {
	return checks.Drains{
		Reader: t.Client, Live: t.Live, TimeOut: t.Config.NodeDrain.TimeOut.Duration, PDBTimeout: pdbTimeout,
		IgnoreNamespaces: t.Config.NodeDrain.IgnoreNamespaces, Explanations: t.Drains,
	}
}

// WithDelayNotification adds a keep-alive to the steps up to the committing one. It notifies once that the
// upgrade takes long to commence.
func (s StepSet) WithDelayNotification(table ...engine.Step) []engine.Step {
	for i := range table {
		table[i].KeepAlive = append(table[i].KeepAlive, engine.KeepAlive{
			Name: "DelayNotification", Renew: notify.DelayKeepAlive(s.Notifier, s.attempt.delayThreshold, s.attempt.delayNotification()),
		})
		if table[i].Commit != nil {
			break
		}
	}
	return table
}

// Admission returns the gates before the first step. A retry of an upgrade that had commenced finishes the rest
// although the cluster has the version.
func (s StepSet) Admission() []engine.Gate {
	notThereYet := admission.NotThereYet(s.Client, s.target)
	if s.attempt.commencedBefore() {
		notThereYet = func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Done("an earlier attempt had commenced"), nil
		}
	}
	return []engine.Gate{
		installedVersionKnown(s.Deps),
		{Name: "SpecValid", Check: admission.SpecValid(s.Client, s.target)},
		{Name: "NotThereYet", Check: notThereYet},
	}
}

// StartedNotificationSent is the first step.
func (s StepSet) StartedNotificationSent() engine.Step {
	return engine.Step{
		Name: "StartedNotificationSent",
		Doc:  "Sends the notification that the upgrade starts.",
		Do:   s.attempt.send(engine.MilestoneStarted, notify.Normal, "UpgradeStarted", "starts"),

		Milestone: engine.MilestoneStarted,
	}
}

// ApprovalGranted waits for the approval of another client, for at most the given time. No table of this
// package has it.
func (s StepSet) ApprovalGranted(within time.Duration) engine.Step {
	granted := approval.WaitUntilApproved(s.Client, s.attempt.cfg)
	return engine.Step{
		Name:       "ApprovalGranted",
		Doc:        "Waits until the condition Approved of the UpgradeConfig approves the upgrade.",
		Do:         granted,
		PreCheck:   granted,
		FailAfter:  within,
		FailReason: "NotApproved",
	}
}

// StillApproved is the gate of a committing step behind ApprovalGranted.
func (s StepSet) StillApproved() engine.Gate {
	return engine.Gate{Name: "Approved", Check: approval.WaitUntilApproved(s.Live, s.attempt.cfg)}
}

// VersionPinned sets the channel that offers the version.
func (s StepSet) VersionPinned() engine.Step {
	return engine.Step{
		Name:     "VersionPinned",
		Doc:      "Sets the channel and waits until the version is offered.",
		Do:       controlplane.SetChannel(s.Client, s.target),
		PreCheck: controlplane.PreCheckUpdateAvailable(s.Client, s.target),
	}
}

// ClusterUpgradeable checks whether the cluster may be upgraded.
func (s StepSet) ClusterUpgradeable() engine.Step {
	return engine.Step{
		Name:      "ClusterUpgradeable",
		Doc:       "Waits until no other update is in progress and the cluster is upgradeable.",
		Do:        s.Upgradeable,
		PreCheck:  s.Upgradeable,
		KeepAlive: []engine.KeepAlive{s.channel},
	}
}

// PreChecksAccepted waits until an administrator accepts the risks. If the window closes first, the upgrade
// fails with the reason of this step.
func (s StepSet) PreChecksAccepted() engine.Step {
	step := preChecksAccepted(s.plan)
	step.KeepAlive = []engine.KeepAlive{s.channel}
	return step
}

// preChecksAccepted is the step of every runbook.
func preChecksAccepted(plan prechecks.PlanSteps) engine.Step {
	return engine.Step{
		Name:       "PreChecksAccepted",
		Doc:        "Waits until each risk that the UpdatePlan of the version reports is accepted, if preChecks.mode is Require. The plan is analyzed again if its analysis is older than 30 minutes.",
		Do:         plan.WaitUntilAccepted(),
		PreCheck:   plan.PreCheck(),
		FailReason: prechecks.ReasonNotAccepted,
	}
}

// PreHealthCheck checks whether the cluster is healthy.
func (s StepSet) PreHealthCheck() engine.Step {
	return engine.Step{
		Name:      "PreHealthCheck",
		Doc:       "Waits until operators, machine config pools, and nodes are healthy, no PodDisruptionBudget of the platform blocks a drain, and no critical alert fires.",
		Gates:     []engine.Gate{preChecksStillAccepted(s.plan)},
		Do:        s.healthy,
		PreCheck:  health.PreCheckHealth(s.preHealthChecks(), "ClusterUnhealthy"),
		KeepAlive: []engine.KeepAlive{s.channel, keepAnalyzed(s.plan)},
	}
}

// ExternalDependenciesAvailable checks what the upgrade needs outside the cluster.
func (s StepSet) ExternalDependenciesAvailable() engine.Step {
	available := externaldeps.WaitUntilAvailable(s.Dependencies)
	return engine.Step{
		Name:      "ExternalDependenciesAvailable",
		Doc:       "Waits until the external dependencies of the upgrade can be reached.",
		Do:        available,
		PreCheck:  available,
		KeepAlive: []engine.KeepAlive{s.channel},
	}
}

// ScaleUpExtraNodes adds the requested nodes.
func (s StepSet) ScaleUpExtraNodes() engine.Step {
	return engine.Step{
		Name: "ScaleUpExtraNodes",
		Doc:  "Adds a node for each MachineSet of workers if spec.capacityReservation requests it. Continues without those that are not ready in time.",
		Do:   s.ExtraNodes.Add(s.attempt.ref(), s.attempt.wantsExtraNodes(), s.Config.Scale.Timeout.Duration),

		KeepAlive: []engine.KeepAlive{s.channel},
	}
}

// ControlPlaneMaintWindow opens the first silence window.
func (s StepSet) ControlPlaneMaintWindow() engine.Step {
	return engine.Step{
		Name: "ControlPlaneMaintWindow",
		Doc:  "Silences the alerts that are noise while the control plane is upgraded. Continues without silences if Alertmanager cannot be reached.",
		Do:   s.controlPlane.Open(),

		KeepAlive: []engine.KeepAlive{s.channel},
	}
}

// CommenceUpgrade is the point of no return. The pass that makes the request also repeats the earlier checks,
// the slow ones last, and checks the preconditions again on the ClusterVersion that it patches.
func (s StepSet) CommenceUpgrade(noOtherUpdate engine.Gate, preconditions ...controlplane.Precondition) engine.Step {
	preconditions = append([]controlplane.Precondition{controlplane.Available}, preconditions...)
	step := engine.Step{
		Name: "CommenceUpgrade",
		Doc:  "Requests the version from the cluster version operator and waits until it is accepted.",
		Gates: []engine.Gate{
			{Name: "UpdateAvailable", Check: s.updateAvailable},
			noOtherUpdate,
			preChecksStillAccepted(s.plan),
			{Name: "ExternalDependenciesAvailable", Check: externaldeps.WaitUntilAvailable(s.Dependencies)},
			{Name: "ClusterHealthy", Check: s.healthy},
		},
		Do: controlplane.RequestUpdate(s.Client, s.Live, s.target, preconditions...),
		Commit: &engine.Commit{
			Observe:  controlplane.ObserveRequest(s.Client, s.Live, s.target),
			Withdraw: controlplane.WithdrawRequest(s.Client, s.Live, s.target),
		},
		KeepAlive: []engine.KeepAlive{
			{Name: "ControlPlaneSilence", Renew: s.controlPlane.KeepAlive()},
			s.channel,
			keepAnalyzed(s.plan),
			{Name: "Request", Renew: controlplane.WithdrawOutdatedRequest(s.Client, s.Live, s.target)},
		},
		Milestone:  engine.MilestoneCommenced,
		FailReason: "TargetRefused",
	}
	if len(s.delays) > 0 {
		step.Gates = append(step.Gates, s.addedPoolsPaused())
	}
	return step
}

// DelayedNotificationSent records whether a delay was notified.
func (s StepSet) DelayedNotificationSent() engine.Step {
	return engine.Step{
		Name: "DelayedNotificationSent",
		Doc:  "Sends the notification that the upgrade takes long to commence, already while the steps above wait.",
		Do:   notify.SendIfDelayed(s.Notifier, s.attempt.delayThreshold, s.attempt.delayNotification()),

		Milestone: engine.MilestoneDelayed,
	}
}

// ControlPlaneUpgraded is the longest wait.
func (s StepSet) ControlPlaneUpgraded() engine.Step {
	step := engine.Step{
		Name:      "ControlPlaneUpgraded",
		Doc:       "Waits until the control plane is at the version.",
		Do:        controlplane.WaitUntilUpgraded(s.Client, s.Live, s.target),
		KeepAlive: []engine.KeepAlive{{Name: "ControlPlaneSilence", Renew: s.controlPlane.KeepAlive()}, s.attempt.otherRequest(s.Client, s.target)},
		Milestone: engine.MilestoneControlPlaneUpgraded,
		Reached:   controlplane.IsUpgraded(s.Client, s.target),
		SlowAfter: s.Config.ControlPlane.SlowAfter.Duration,
	}
	if len(s.delays) == 0 {
		return step
	}
	step.FailBy = s.failBy
	return s.releasing(step)
}

// RemoveControlPlaneMaintWindow closes the first silence window.
func (s StepSet) RemoveControlPlaneMaintWindow() engine.Step {
	return engine.Step{
		Name: "RemoveControlPlaneMaintWindow",
		Doc:  "Ends the silences of the control plane's upgrade.",
		Do:   s.controlPlane.Close(),
	}
}

// WorkersMaintWindow opens the second silence window.
func (s StepSet) WorkersMaintWindow() engine.Step {
	return engine.Step{
		Name: "WorkersMaintWindow",
		Doc:  "Silences the alerts that are noise while the worker nodes are upgraded. Continues without silences if Alertmanager cannot be reached.",
		Do:   s.workers.Open(),
	}
}

// AllWorkerNodesUpgraded waits for the nodes.
func (s StepSet) AllWorkerNodesUpgraded() engine.Step {
	return engine.Step{
		Name:      "AllWorkerNodesUpgraded",
		Doc:       "Waits until all machine config pools are at the version.",
		Do:        pools.WaitUntilUpdated(s.Client, s.drains),
		Gates:     []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		KeepAlive: []engine.KeepAlive{{Name: "WorkersSilence", Renew: s.workers.KeepAlive()}},
		Milestone: engine.MilestoneWorkersUpgraded,
		Reached:   pools.AllUpdated(s.Client, s.Live),
		SlowAfter: s.Config.Workers.SlowAfter.Duration,
	}
}

// RemoveExtraScaledNodes removes the added nodes.
func (s StepSet) RemoveExtraScaledNodes() engine.Step {
	return engine.Step{
		Name:      "RemoveExtraScaledNodes",
		Doc:       "Removes the extra nodes and waits until they are gone.",
		Do:        s.ExtraNodes.Remove(),
		KeepAlive: []engine.KeepAlive{{Name: "WorkersSilence", Renew: s.workers.KeepAlive()}},
		SlowAfter: s.Config.Scale.Timeout.Duration,
	}
}

// RemoveMaintWindow closes the second silence window.
func (s StepSet) RemoveMaintWindow() engine.Step {
	return engine.Step{
		Name: "RemoveMaintWindow",
		Doc:  "Ends the silences of the worker nodes' upgrade.",
		Do:   s.workers.Close(),
	}
}

// PostClusterHealthCheck checks whether the cluster is healthy after the upgrade.
func (s StepSet) PostClusterHealthCheck() engine.Step {
	return engine.Step{
		Name:       "PostClusterHealthCheck",
		Doc:        "Waits until operators, machine config pools, and nodes are healthy again, no PodDisruptionBudget of the platform blocks a drain, and no critical alert fires.",
		Do:         health.WaitUntilHealthy(s.postHealthChecks(), "UnhealthyAfterUpgrade"),
		Gates:      []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		Reached:    health.IsHealthy(s.postHealthChecks()),
		FailAfter:  s.Config.PostHealthCheck.Timeout.Duration,
		FailReason: "UnhealthyAfterUpgrade",
	}
}

// PostUpgradeProcedures runs the configured procedures.
func (s StepSet) PostUpgradeProcedures() engine.Step {
	on := postupgrade.Cluster{Live: s.Live, Writer: s.Client}
	return engine.Step{
		Name: "PostUpgradeProcedures",
		Doc:  "Runs the configured procedures. Continues without those that fail.",
		Do:   postupgrade.Run(on, s.attempt.key(), s.Config.PostUpgrade.Procedures),
	}
}

// CompletedNotificationSent is the last step.
func (s StepSet) CompletedNotificationSent() engine.Step {
	return engine.Step{
		Name: "CompletedNotificationSent",
		Doc:  "Sends the notification that the upgrade is complete.",
		Do:   s.attempt.send(engine.MilestoneCompleted, notify.Normal, "UpgradeCompleted", "is complete"),

		Milestone: engine.MilestoneCompleted,
	}
}

// notifyFailure sends the notification about an upgrade that has not succeeded.
func notifyFailure(a announcer) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) { return a.sendFailure(run)(ctx, run) }
}

// ifRequested skips the withdrawal if this upgrade has made no request.
func ifRequested(withdraw engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !run.Requested {
			return engine.Skip("NothingToWithdraw", "this upgrade has requested nothing from the cluster version operator"), nil
		}
		return withdraw(ctx, run)
	}
}

// Cleanup returns the steps that replace the rest after an upgrade has failed.
func (s StepSet) Cleanup() []engine.Step {
	steps := []engine.Step{
		{
			Name: "TargetWithdrawn",
			Doc:  "Withdraws the request for the version if the cluster version operator has not begun to install it.",
			Do:   ifRequested(controlplane.WithdrawRequest(s.Client, s.Live, s.target)),
		},
		{
			Name: "ChannelRestored",
			Doc:  "Restores the update channel that the upgrade has changed, unless the upgrade has commenced.",
			Do:   controlplane.RestoreChannel(s.Client, s.Live, s.target, s.attempt.record.PrecedingChannel, s.attempt.record.Channels...),
		},
		{
			Name:      stepClusterSettled,
			Doc:       "Waits until no installation is in progress, if the upgrade had commenced.",
			Do:        controlplane.WaitUntilSettled(s.Client, s.target),
			FailAfter: s.Config.Cleanup.SettleTimeout.Duration,
		},
		{
			Name: "SilencesEnded",
			Doc:  "Ends the silences of the upgrade that are left.",
			Do:   s.Silencer.CloseAll(s.attempt.ref(), s.silenceSettings()),
		},
		{
			Name: "ExtraNodesRemoved",
			Doc:  "Removes the extra nodes. Continues if that takes long; they are removed nevertheless.",
			Do:   s.ExtraNodes.RemoveWithin(s.Config.Scale.Timeout.Duration),
		},
		{
			Name: "FailureNotificationSent",
			Doc:  "Sends the notification that the upgrade has failed or was cancelled, with the reason.",
			Do:   notifyFailure(s.attempt.announcer),

			Milestone: engine.MilestoneFailed,
		},
	}
	if len(s.delays) == 0 {
		return steps
	}
	settled := &steps[slices.IndexFunc(steps, func(step engine.Step) bool { return step.Name == stepClusterSettled })]
	settled.Do = s.keepReleasing(stepClusterSettled, settled.Do)
	return append(steps, s.PoolsReleased())
}

// Abandon removes silences and extra nodes. After the upgrade is abandoned, no controller would.
func (s StepSet) Abandon(ctx context.Context) error {
	s.Silencer.CloseNow(ctx, s.attempt.ref())
	return s.ExtraNodes.RemoveNow(ctx, s.attempt.ref())
}
