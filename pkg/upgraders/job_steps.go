// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"slices"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/prechecks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/window"
)

// defaultUpgradeTimeout is the default of the schema.
const defaultUpgradeTimeout = 12 * time.Hour

// jobSteps has the lines of the table of UpgradeJobs, for one attempt. Each method returns one line and is
// named for its step.
type jobSteps struct {
	base

	job    *maintenancev1beta1.UpgradeJob
	pinned controlplane.Pinned
	// requested reports whether this attempt has requested the version.
	requested bool
	// delayProblem explains why entries of spec.config.machineConfigPools are invalid, or is empty.
	delayProblem string

	plan prechecks.PlanSteps

	notSuspended, available, upgradeable, healthy engine.UpgradeStep
}

func newJobSteps(t Deps, job *maintenancev1beta1.UpgradeJob, record history.Record) jobSteps {
	target := clusterstate.Target{Version: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image}
	s := jobSteps{base: t.newBase(maintenance.JobOwners().Owner(job, record), record, target), job: job, requested: record.RequestTime != nil}
	s.start, s.failBy = jobTimes(job, record)
	s.delaySource, s.drains, s.knownPools = "spec.config.machineConfigPools", t.jobDrains(job), pools.KnownPools(job.Status.MachineConfigPools)
	var err error
	if s.delays, err = poolDelays(job); err != nil {
		s.delayProblem = err.Error()
	}
	s.announcer = announcer{notifier: t.Notifier, attemptKey: engine.AttemptKey(record)}
	s.common.Subject = objects.Reference(job, maintenancev1beta1.GroupVersion.WithKind("UpgradeJob"))
	s.common.Version, s.common.Attempt = s.target.Version, record.Attempt

	s.notSuspended = window.FailIfSuspended(t.Client, t.Live, job, s.start)
	s.pinned = controlplane.Pinned{
		Target: s.target, CheckAvailability: isSet(job.Spec.DesiredVersionCheckAvailability), Requested: s.requested,
	}
	s.available = controlplane.FailUnlessAvailable(t.Client, t.Live, s.pinned)
	s.upgradeable = inOrder(controlplane.NothingInstalling(t.Client), controlplane.Upgradeable(t.Client, s.target))
	s.plan = t.updatePlan(s.target)
	s.healthy = health.WaitUntilHealthy(s.preHealthChecks(), reasonClusterUnhealthy)
	return s
}

// jobTimes returns when the window of an attempt opens, and when the upgrade times out.
func jobTimes(job *maintenancev1beta1.UpgradeJob, record history.Record) (start, failBy time.Time) {
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

// hooksOnlySteps are the steps of an UpgradeJob without a version.
var hooksOnlySteps = []string{
	"CreateHooksDone", "StartTimeReached", stepNotSuspended, lockStep, "StartedNotificationSent", "StartHooksDone",
	"UpgradeStartHooksDone", "UpgradeCompleteHooksDone",
}

// unlessHooksOnly skips the steps that depend on a version if there is none.
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

// withoutUpdate returns a step that skips. It has no deadlines, because hooks may run for longer than an
// upgrade may take.
func withoutUpdate(step engine.Step) engine.Step {
	skipped := engine.Step{Name: step.Name, FormerNames: step.FormerNames, Doc: step.Doc, Do: skipWithoutUpdate, Milestone: step.Milestone}
	if step.Commit != nil {
		skipped.Commit = &engine.Commit{After: step.Commit.After, Observe: func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
			return engine.ObservedNone, engine.Result{}, nil
		}}
	}
	return skipped
}

func skipWithoutUpdate(context.Context, engine.Run) (engine.Result, error) {
	return engine.Skip(engine.ReasonNoUpdate, "this UpgradeJob names no version"), nil
}

// StartTimeReached waits for the window.
func (s jobSteps) StartTimeReached() engine.Step {
	return engine.Step{
		Name: "StartTimeReached",
		Doc:  "Waits until startAfter. Nothing is written until then.",
		Do:   window.WaitUntilStart(s.start),

		Repeatable: true,
	}
}

// NotSuspended checks whether the upgrade may start.
func (s jobSteps) NotSuspended() engine.Step {
	return engine.Step{
		Name:     stepNotSuspended,
		Doc:      "Skips the upgrade if an UpgradeSuspensionWindow or its UpgradeConfig suspends it, or if the schedule no longer selects its start.",
		Do:       s.notSuspended,
		PreCheck: window.FailIfSuspended(s.Client, s.Client, s.job, s.start), // it ends nothing, so the cache suffices

		Repeatable: true,
	}
}

// LockAcquired acquires the lock of the cluster.
func (s jobSteps) LockAcquired(acquire engine.UpgradeStep) engine.Step {
	return engine.Step{
		Name:  lockStep,
		Doc:   "Waits until no other upgrade of the cluster is in progress.",
		Gates: []engine.Gate{{Name: stepNotSuspended, Check: s.notSuspended}},
		Do:    acquire,
	}
}

// StartedNotificationSent is the first step with an effect outside the status.
func (s jobSteps) StartedNotificationSent() engine.Step {
	return engine.Step{
		Name: "StartedNotificationSent",
		Doc:  "Sends the notification that the upgrade starts.",
		Do:   s.send(engine.MilestoneStarted, notify.Normal, "UpgradeStarted", "starts"),

		Repeatable: true,
		Milestone:  engine.MilestoneStarted,
	}
}

// VersionStillAvailable checks the version, which was selected before the window.
func (s jobSteps) VersionStillAvailable() engine.Step {
	return engine.Step{
		Name:     "VersionStillAvailable",
		Doc:      "Skips the upgrade if the version is installed already, or no longer offered.",
		Do:       s.available,
		PreCheck: controlplane.FailUnlessAvailable(s.Client, s.Client, s.pinned), // it ends nothing, so the cache suffices

		Repeatable: true,
	}
}

// ClusterUpgradeable checks whether the cluster may be upgraded.
func (s jobSteps) ClusterUpgradeable() engine.Step {
	return engine.Step{
		Name:     "ClusterUpgradeable",
		Doc:      "Waits until no other update is in progress, on the control plane or on the nodes of a pool that is not paused, and the cluster is upgradeable.",
		Gates:    []engine.Gate{{Name: stepNotSuspended, Check: s.notSuspended}, {Name: "VersionStillAvailable", Check: s.available}},
		Do:       s.upgradeable,
		PreCheck: s.upgradeable,

		Repeatable: true,
	}
}

// PreChecksAccepted waits until an administrator accepts the risks. If the window closes first, the upgrade is
// skipped.
func (s jobSteps) PreChecksAccepted() engine.Step {
	step := preChecksAccepted(s.plan)
	step.Gates = []engine.Gate{{Name: stepNotSuspended, Check: s.notSuspended}, {Name: "VersionStillAvailable", Check: s.available}}
	step.Repeatable = true
	return step
}

// preHealthChecks are the checks of preUpgradeHealthChecks. Findings accepted in the UpdatePlan do not block.
func (s jobSteps) preHealthChecks() checks.Runner {
	runner := s.jobHealthChecks(s.job.Spec.Config.PreUpgradeHealthChecks)
	runner.Accepted = s.plan.Accepted
	return runner
}

// PreHealthCheck checks whether the cluster is healthy.
func (s jobSteps) PreHealthCheck() engine.Step {
	return engine.Step{
		Name: "PreHealthCheck",
		Doc:  "Waits until the checks of preUpgradeHealthChecks pass. The upgrade is skipped if they do not within their timeout.",
		Gates: []engine.Gate{
			s.inTime(engine.Gate{Name: stepNotSuspended, Check: s.notSuspended}, "whether the upgrade is suspended is unknown"),
			s.inTime(preChecksStillAccepted(s.plan), "the accepted risks are unknown"),
		},
		Do:       s.healthy,
		PreCheck: health.PreCheckHealth(s.preHealthChecks(), reasonClusterUnhealthy),

		KeepAlive:  []engine.KeepAlive{keepAnalyzed(s.plan)},
		Repeatable: true,
	}
}

// inTime returns a gate of the health check that fails at the timeout of the check: while the gate is closed,
// no check is made. Unknown describes what then remains unknown.
func (s jobSteps) inTime(gate engine.Gate, unknown string) engine.Gate {
	check, timeout := gate.Check, healthTimeout(s.job.Spec.Config.PreUpgradeHealthChecks)
	gate.Check = func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := check(ctx, run)
		rest := timeout - run.Now.Sub(run.Since)
		switch {
		case err == nil && (result.Passed() || result.Failed()):
			return result, nil
		case rest > 0:
			return result.NoLaterThan(rest), err
		case err != nil:
			return engine.Fail(reasonClusterUnhealthy, "not healthy within %s: %s: CouldNotBeDetermined: %v", timeout, unknown, err), nil
		}
		return engine.Fail(reasonClusterUnhealthy, "not healthy within %s: %s: %s", timeout, unknown, result.Message()), nil
	}
	return gate
}

// UpgradeCommenced is the point of no return. The pass that makes the request also repeats the earlier checks,
// and checks the preconditions again on the ClusterVersion that it patches.
func (s jobSteps) UpgradeCommenced() engine.Step {
	return engine.Step{
		Name: stepUpgradeCommenced,
		Doc:  "Requests the version from the cluster version operator and waits until it is accepted.",
		Gates: []engine.Gate{
			{Name: stepNotSuspended, Check: s.notSuspended},
			{Name: "VersionStillAvailable", Check: s.available},
			{Name: "ClusterUpgradeable", Check: s.upgradeable},
			preChecksStillAccepted(s.plan),
			{Name: "ClusterHealthy", Check: s.healthy},
			{Name: "NotRequestedByOther", Check: controlplane.NotRequestedByOther(s.Client, s.target)},
			s.addedPoolsPaused(),
		},
		Do:         controlplane.RequestUpdate(s.Client, s.Live, s.target, s.pinned.Precondition, controlplane.NotBusy, controlplane.MinorUpdateAllowed),
		Commit:     &engine.Commit{After: lockStep, Observe: s.observeRequest, Withdraw: controlplane.WithdrawRequest(s.Client, s.Live, s.target)},
		KeepAlive:  []engine.KeepAlive{keepAnalyzed(s.plan), {Name: "Request", Renew: controlplane.WithdrawOutdatedRequest(s.Client, s.Live, s.target)}},
		Milestone:  engine.MilestoneCommenced,
		FailReason: "TargetRefused",
	}
}

// observeRequest observes only the request of this attempt: an update to the same version by another client is
// not this upgrade. While the request waits, a suspension fails the step, because the request can be withdrawn.
func (s jobSteps) observeRequest(ctx context.Context, run engine.Run) (engine.Observed, engine.Result, error) {
	if !run.Requested {
		return engine.ObservedNone, engine.Result{}, nil
	}
	observed, answer, err := controlplane.ObserveRequest(s.Client, s.Live, s.target)(ctx, run)
	if err != nil || answer.IsZero() || answer.Passed() {
		return observed, answer, err
	}
	suspended, err := s.notSuspended(ctx, run)
	if err == nil && suspended.Failed() {
		answer = suspended
	}
	return observed, answer, err
}

// UpgradeCompleted is the longest wait.
func (s jobSteps) UpgradeCompleted() engine.Step {
	d := s.delayed(stepUpgradeCompleted)
	return s.releasing(engine.Step{
		Name: stepUpgradeCompleted,
		Doc:  "Waits until the cluster is available at the version, and until all machine config pools that are not delayed are updated. During the wait, delayed pools are unpaused as planned.",
		Do: inOrder(
			controlplane.WaitUntilUpgraded(s.Client, s.Live, s.target),
			controlplane.WaitUntilAvailable(s.Client),
			d.Undelayed(),
		),
		KeepAlive: []engine.KeepAlive{s.otherRequest(s.Client, s.target)},
		Reached:   all(controlplane.IsUpgradedAndAvailable(s.Client, s.Live, s.target), d.AreUndelayedUpdated),
		Milestone: engine.MilestoneControlPlaneUpgraded,
		SlowAfter: s.Config.ControlPlane.SlowAfter.Duration,
		FailBy:    s.failBy,
	})
}

// inOrder returns a step that is done when all of the steps are. The first unfinished step answers.
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

// all reports whether all conditions hold.
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

// jobDrains explains what holds the drains of nodes. Without forceDrainAfter, no drain is forced.
func (t Deps) jobDrains(job *maintenancev1beta1.UpgradeJob) checks.Drains {
	after := ForceDrainAfter(job)
	drains := t.drainsWithin(after)
	if after < 0 {
		drains.TimeOut = -1
	}
	return drains
}

// ForceDrainAfter returns after how long an UpgradeJob forces a blocked drain. It never does if the result is
// negative.
func ForceDrainAfter(job *maintenancev1beta1.UpgradeJob) time.Duration {
	after, err := maintenance.Duration(job.Spec.Config.ForceDrainAfter)
	if err != nil || job.Spec.Config.ForceDrainAfter == "" {
		return -1
	}
	return after
}

// PostHealthCheck checks whether the cluster is healthy after the upgrade.
func (s jobSteps) PostHealthCheck() engine.Step {
	settings := s.job.Spec.Config.PostUpgradeHealthChecks
	runner := s.jobPostHealthChecks(settings)
	return engine.Step{
		Name:       "PostHealthCheck",
		Doc:        "Waits until the checks of postUpgradeHealthChecks pass.",
		Do:         health.WaitUntilHealthy(runner, reasonUnhealthyAfterUpgrade),
		Gates:      []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		Reached:    health.IsHealthy(s.jobHealthChecks(settings)), // pending alerts fail no upgrade
		FailAfter:  runner.Options.Timeout,
		FailReason: reasonUnhealthyAfterUpgrade,
		Repeatable: true,
	}
}

// TargetWithdrawn withdraws the request.
func (s jobSteps) TargetWithdrawn() engine.Step {
	return engine.Step{
		Name: "TargetWithdrawn",
		Doc:  "Withdraws the request for the version if the cluster version operator has not begun to install it.",
		Do:   ifRequested(controlplane.WithdrawRequest(s.Client, s.Live, s.target)),
	}
}

// FailureNotificationSent announces an unsuccessful end of the upgrade.
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
		Doc:       "Waits until no installation is in progress, if the upgrade had commenced. During the wait, delayed machine config pools are unpaused as planned.",
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

// CompletedNotificationSent announces a success.
func (s jobSteps) CompletedNotificationSent() engine.Step {
	return engine.Step{
		Name: "CompletedNotificationSent",
		Doc:  "Sends the notification that the upgrade is complete. Skipped if it did not succeed.",
		Do:   ifSuccessful(s.send(engine.MilestoneCompleted, notify.Normal, "UpgradeCompleted", "is complete")),

		Repeatable: true,
		Milestone:  engine.MilestoneCompleted,
	}
}
