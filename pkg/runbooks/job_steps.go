// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"context"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/window"
)

// defaultUpgradeTimeout is the default of the schema.
const defaultUpgradeTimeout = 12 * time.Hour

// jobSteps has the lines of the table of UpgradeJobs, for one attempt. Each method returns one line
// and is named for its step.
type jobSteps struct {
	Deps
	announcer

	job    *v1beta1.UpgradeJob
	record history.Record
	target clusterstate.Target
	pinned controlplane.Pinned
	start  time.Time // of the window of this attempt
	failBy time.Time // when the upgrade times out
	// requested reports whether this attempt has requested the version.
	requested bool
	// delays are the entries of spec.config.machineConfigPools; delayProblem is why they are invalid;
	// empty means that they are valid.
	delays       []pools.Delay
	delayProblem string

	plan prechecks.Plan

	notSuspended, available, upgradeable, healthy, notSuperseded engine.UpgradeStep
}

func newJobSteps(t Deps, job *v1beta1.UpgradeJob, record history.Record) jobSteps {
	s := jobSteps{Deps: t, job: job, record: record, requested: record.RequestTime != nil}
	s.target = clusterstate.Target{Version: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image}
	s.start, s.failBy = jobTimes(job, record)
	var err error
	if s.delays, err = poolDelays(job); err != nil {
		s.delayProblem = err.Error()
	}
	s.announcer = announcer{notifier: t.Notifier, attemptKey: engine.AttemptKey(record)}
	s.common.Subject = notify.ObjectReference(v1beta1.GroupVersion.String(), "UpgradeJob", job)
	s.common.Version, s.common.Attempt = s.target.Version, record.Attempt

	s.notSuspended = window.FailIfSuspended(t.Client, t.Live, job, s.start)
	s.pinned = controlplane.Pinned{
		Target: s.target, CheckAvailability: isSet(job.Spec.DesiredVersionCheckAvailability), Requested: s.requested,
	}
	s.available = controlplane.FailUnlessAvailable(t.Client, t.Live, s.pinned)
	s.upgradeable = inOrder(controlplane.NothingInstalling(t.Client), controlplane.Upgradeable(t.Client, s.target))
	s.plan = t.updatePlan(s.target)
	s.healthy = health.WaitUntilHealthy(s.preHealthChecks(), reasonClusterUnhealthy)
	s.notSuperseded = controlplane.NotSuperseded(t.Client, t.Live, s.target)
	return s
}

// jobTimes returns when the window of an attempt opens, and when the upgrade times out.
func jobTimes(job *v1beta1.UpgradeJob, record history.Record) (start, failBy time.Time) {
	start, err := maintenance.AttemptStart(job, record)
	if err != nil {
		return time.Time{}, time.Time{} // such an UpgradeJob never starts
	}
	timeout, err := maintenance.Duration(job.Spec.Config.UpgradeTimeout)
	if err != nil || timeout <= 0 {
		timeout = defaultUpgradeTimeout
	}
	return start, start.Add(timeout)
}

// hooksOnly reports whether the UpgradeJob names no version.
func (s jobSteps) hooksOnly() bool { return s.target.Version == "" }

// hooksOnlySteps are the steps that do not depend on a version.
var hooksOnlySteps = []string{
	"CreateHooksDone", "StartTimeReached", "NotSuspended", lockStep, "StartedNotificationSent", "StartHooksDone",
	"UpgradeStartHooksDone", "UpgradeCompleteHooksDone",
}

// unlessHooksOnly makes the steps that depend on a version skip if there is none.
func (s jobSteps) unlessHooksOnly(table []engine.Step) []engine.Step {
	if !s.hooksOnly() {
		return table
	}
	for i := range table {
		if !slices.Contains(hooksOnlySteps, table[i].Name) {
			table[i] = withoutUpdate(table[i])
		}
	}
	return table
}

// withoutUpdate returns a step that skips. It has no deadlines: hooks may run for longer than an
// upgrade may take.
func withoutUpdate(step engine.Step) engine.Step {
	skipped := engine.Step{
		Name: step.Name, FormerNames: step.FormerNames, Doc: step.Doc, Do: skipWithoutUpdate,
		Commits: step.Commits, Milestone: step.Milestone,
	}
	if step.Commits { // Validate requires it
		skipped.Reached = step.Reached
	}
	return skipped
}

func skipWithoutUpdate(context.Context, engine.Run) (engine.Result, error) {
	return engine.Skip(reasonNoUpdate, "this UpgradeJob names no version"), nil
}

// StartTimeReached waits for the window.
func (s jobSteps) StartTimeReached() engine.Step {
	return engine.Step{
		Name: "StartTimeReached",
		Doc:  "Waits until startAfter. Nothing is written meanwhile.",
		Do:   window.WaitUntilStart(s.start),
	}
}

// NotSuspended checks whether the upgrade may start.
func (s jobSteps) NotSuspended() engine.Step {
	return engine.Step{
		Name:     "NotSuspended",
		Doc:      "Skips the upgrade if an UpgradeSuspensionWindow or its UpgradeConfig suspends it, or if the schedule does not select its start any more.",
		Do:       s.notSuspended,
		PreCheck: window.FailIfSuspended(s.Client, s.Client, s.job, s.start), // it ends nothing: the cache suffices
	}
}

// LockAcquired acquires the lock of the cluster.
func (s jobSteps) LockAcquired(acquire engine.UpgradeStep) engine.Step {
	return engine.Step{
		Name:  lockStep,
		Doc:   "Waits until no other upgrade of the cluster is in progress.",
		Gates: []engine.Gate{{Name: "NotSuspended", Check: s.notSuspended}},
		Do:    acquire,
	}
}

// StartedNotificationSent is the first step that others observe.
func (s jobSteps) StartedNotificationSent() engine.Step {
	return engine.Step{
		Name: "StartedNotificationSent",
		Doc:  "Sends the notification that the upgrade starts.",
		Do:   s.send(engine.MilestoneStarted, notify.Normal, "UpgradeStarted", "starts"),

		Milestone: engine.MilestoneStarted,
	}
}

// VersionStillAvailable checks the version that was selected before the window.
func (s jobSteps) VersionStillAvailable() engine.Step {
	return engine.Step{
		Name:     "VersionStillAvailable",
		Doc:      "Skips the upgrade if the version is installed already, or not offered any more.",
		Do:       s.available,
		PreCheck: controlplane.FailUnlessAvailable(s.Client, s.Client, s.pinned), // it ends nothing: the cache suffices
	}
}

// ClusterUpgradeable checks whether the cluster may be upgraded.
func (s jobSteps) ClusterUpgradeable() engine.Step {
	return engine.Step{
		Name:     "ClusterUpgradeable",
		Doc:      "Waits until no other update is in progress, on the control plane or on the nodes of a pool that is not paused, and the cluster is upgradeable.",
		Gates:    []engine.Gate{{Name: "NotSuspended", Check: s.notSuspended}, {Name: "VersionStillAvailable", Check: s.available}},
		Do:       s.upgradeable,
		PreCheck: s.upgradeable,
	}
}

// PreChecksAccepted waits until an administrator accepts the risks. If the window closes meanwhile, the
// upgrade is skipped.
func (s jobSteps) PreChecksAccepted() engine.Step {
	step := preChecksAccepted(s.plan)
	step.Gates = []engine.Gate{{Name: "NotSuspended", Check: s.notSuspended}, {Name: "VersionStillAvailable", Check: s.available}}
	return step
}

// preHealthChecks are the checks of preUpgradeHealthChecks. What is accepted in the UpdatePlan does not
// block.
func (s jobSteps) preHealthChecks() checks.Runner {
	runner := s.jobHealthChecks(s.job.Spec.Config.PreUpgradeHealthChecks)
	runner.Accepted = s.plan.Accepted
	return runner
}

// PreHealthCheck checks whether the cluster is healthy.
func (s jobSteps) PreHealthCheck() engine.Step {
	return engine.Step{
		Name:     "PreHealthCheck",
		Doc:      "Waits until the checks of preUpgradeHealthChecks pass. The upgrade is skipped if they do not within their timeout.",
		Gates:    []engine.Gate{{Name: "NotSuspended", Check: s.notSuspended}, s.acceptedInTime()},
		Do:       s.healthy,
		PreCheck: health.PreCheckHealth(s.preHealthChecks(), reasonClusterUnhealthy),

		KeepAlive: []engine.KeepAlive{keepAnalyzed(s.plan)},
	}
}

// acceptedInTime is preChecksStillAccepted that fails at the timeout of the checks: they are not made
// while it is closed.
func (s jobSteps) acceptedInTime() engine.Gate {
	gate, timeout := preChecksStillAccepted(s.plan), healthTimeout(s.job.Spec.Config.PreUpgradeHealthChecks)
	check := gate.Check
	gate.Check = func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := check(ctx, run)
		if err != nil || result.Passed() || run.Now.Sub(run.Since) < timeout {
			return result, err
		}
		return engine.Fail(reasonClusterUnhealthy, "not healthy within %s: the accepted risks are unknown: %s", timeout, result.Message()), nil
	}
	return gate
}

// UpgradeCommenced is the point of no return. What was checked before is checked again in the pass in
// which it acts; what the decisions need is decided once more on the object that is patched.
func (s jobSteps) UpgradeCommenced() engine.Step {
	return engine.Step{
		Name:    "UpgradeCommenced",
		Doc:     "Requests the version from the cluster version operator and waits until it is accepted.",
		Observe: s.ifRequested(s.unlessSuspended(controlplane.WaitUntilAccepted(s.Client, s.target))),
		Gates: []engine.Gate{
			{Name: "NotSuspended", Check: s.notSuspended},
			{Name: "VersionStillAvailable", Check: s.available},
			{Name: "ClusterUpgradeable", Check: s.upgradeable},
			preChecksStillAccepted(s.plan),
			{Name: "ClusterHealthy", Check: s.healthy},
			{Name: "NotRequestedByOther", Check: controlplane.NotRequestedByOther(s.Client, s.target)},
			{Name: "AddedPoolsPaused", Check: s.delayed(stepPoolsPaused).PauseAdded()},
		},
		Do:         controlplane.RequestUpdate(s.Client, s.target, s.pinned.Decision, controlplane.NotBusy, controlplane.MinorUpdateAllowed),
		Undo:       controlplane.WithdrawRequest(s.Client, s.target),
		KeepAlive:  []engine.KeepAlive{keepAnalyzed(s.plan), {Name: "Request", Renew: controlplane.WithdrawOutdatedRequest(s.Client, s.target)}},
		Reached:    s.isCommenced,
		Commits:    true,
		Milestone:  engine.MilestoneCommenced,
		FailReason: "TargetRefused",
	}
}

// ifRequested returns a step that observes nothing unless this attempt has requested the version: an
// update to it that another client has started is not this upgrade.
func (s jobSteps) ifRequested(observe engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !s.requested && !run.Requested {
			return engine.Result{}, nil
		}
		return observe(ctx, run)
	}
}

// unlessSuspended returns a step that fails once the upgrade is suspended while a request of this
// attempt waits: what is requested but not accepted can be withdrawn. The API server confirms that the
// upgrade has not commenced.
func (s jobSteps) unlessSuspended(observe engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := observe(ctx, run)
		if err != nil || result.IsZero() || result.Passed() || !run.Requested {
			return result, err
		}
		suspended, err := s.notSuspended(ctx, run)
		switch {
		case err != nil:
			return engine.Result{}, err
		case !suspended.Failed():
			return result, nil
		}
		commenced, err := controlplane.IsCommenced(s.Client, s.Live, s.target)(ctx)
		switch {
		case err != nil:
			return engine.Result{}, err
		case commenced:
			return engine.Done("the cluster version operator has accepted %s", s.target.Version), nil
		}
		return suspended, nil
	}
}

func (s jobSteps) isCommenced(ctx context.Context) (bool, error) {
	if !s.requested || s.hooksOnly() {
		return false, nil
	}
	return controlplane.IsCommenced(s.Client, s.Live, s.target)(ctx)
}

// UpgradeCompleted is the longest wait.
func (s jobSteps) UpgradeCompleted() engine.Step {
	d := s.delayed(stepUpgradeCompleted)
	return engine.Step{
		Name: stepUpgradeCompleted,
		Doc:  "Waits until the cluster is available at the version, and until all machine config pools that are not delayed are updated. Meanwhile, delayed pools are unpaused in their time.",
		Do: d.KeepReleasing(inOrder(
			controlplane.WaitUntilUpgraded(s.Client, s.Live, s.target),
			controlplane.WaitUntilAvailable(s.Client),
			d.Undelayed(),
		)),
		Reached:   all(controlplane.IsUpgradedAndAvailable(s.Client, s.Live, s.target), d.AreUndelayedUpdated),
		Items:     s.hookItems(stepUpgradeCompleted, v1beta1.EventMachineConfigPoolUnpause),
		Milestone: engine.MilestoneControlPlaneUpgraded,
		SlowAfter: s.Config.ControlPlane.SlowAfter.Duration,
		FailBy:    s.failBy,
	}
}

// inOrder returns a step that is done once all of the steps are. The first that is not answers.
func inOrder(steps ...engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var result engine.Result
		for _, step := range steps {
			var err error
			if result, err = step(ctx, run); err != nil || !result.Passed() {
				return result, err
			}
		}
		return result, nil
	}
}

// all reports whether all of the conditions hold.
func all(conditions ...func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		for _, holds := range conditions {
			if ok, err := holds(ctx); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}
}

// jobDrains explains what holds the drains of nodes. Without forceDrainAfter none is forced.
func (s jobSteps) jobDrains() checks.Drains {
	after := ForceDrainAfter(s.job)
	drains := s.drainsWithin(after)
	if after < 0 {
		drains.TimeOut = -1
	}
	return drains
}

// ForceDrainAfter returns after how long a blocked drain is forced for an UpgradeJob; negative means
// never.
func ForceDrainAfter(job *v1beta1.UpgradeJob) time.Duration {
	after, err := maintenance.Duration(job.Spec.Config.ForceDrainAfter)
	if err != nil || job.Spec.Config.ForceDrainAfter == "" {
		return -1
	}
	return after
}

// PostHealthCheck checks whether the cluster is healthy after the upgrade.
func (s jobSteps) PostHealthCheck() engine.Step {
	runner := s.jobPostHealthChecks(s.job.Spec.Config.PostUpgradeHealthChecks)
	return engine.Step{
		Name:       "PostHealthCheck",
		Doc:        "Waits until the checks of postUpgradeHealthChecks pass.",
		Do:         health.WaitUntilHealthy(runner, reasonUnhealthyAfterUpgrade),
		Gates:      []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		Reached:    health.IsHealthy(runner),
		FailAfter:  runner.Options.Timeout,
		FailReason: reasonUnhealthyAfterUpgrade,
	}
}

// TargetWithdrawn withdraws the request.
func (s jobSteps) TargetWithdrawn() engine.Step {
	return engine.Step{
		Name: "TargetWithdrawn",
		Doc:  "Withdraws the request for the version if the cluster version operator has not begun to install it.",
		Do:   ifRequested(controlplane.WithdrawRequest(s.Client, s.target)),
	}
}

// FailureNotificationSent sends the notification about how the upgrade ended.
func (s jobSteps) FailureNotificationSent() engine.Step {
	return engine.Step{
		Name: "FailureNotificationSent",
		Doc:  "Sends the notification that the upgrade has failed, or was skipped or cancelled, with the reason.",
		Do:   notifyFailure(s.announcer),

		Milestone: engine.MilestoneFailed,
	}
}

// ClusterSettled keeps the lock while the cluster is being changed.
func (s jobSteps) ClusterSettled() engine.Step {
	return engine.Step{
		Name:      stepClusterSettled,
		Doc:       "Waits until nothing is being installed any more if the upgrade had commenced. Meanwhile, delayed machine config pools are unpaused in their time.",
		Do:        s.keepReleasing(stepClusterSettled, s.ifCommenced(controlplane.WaitUntilSettled(s.Client, s.target))),
		FailAfter: s.Config.Cleanup.SettleTimeout.Duration,
	}
}

// ifCommenced skips a step of the cleanup unless this upgrade has commenced.
func (s jobSteps) ifCommenced(do engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !run.Committed && !run.Requested || s.hooksOnly() {
			return engine.Skip("NotCommenced", "the upgrade had not commenced"), nil
		}
		return do(ctx, run)
	}
}

// CompletedNotificationSent sends the notification of a success.
func (s jobSteps) CompletedNotificationSent() engine.Step {
	return engine.Step{
		Name: "CompletedNotificationSent",
		Doc:  "Sends the notification that the upgrade is complete. Skipped if it did not succeed.",
		Do:   ifSuccessful(s.send(engine.MilestoneCompleted, notify.Normal, "UpgradeCompleted", "is complete")),

		Milestone: engine.MilestoneCompleted,
	}
}
