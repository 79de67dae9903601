// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// The steps that release pools.
const (
	stepPoolsPaused        = "PoolsPaused"
	stepUpgradeCompleted   = "UpgradeCompleted"
	stepCompleteHooksDone  = "UpgradeCompleteHooksDone"
	stepDelayedPoolsUpdate = "DelayedPoolsUpdated"
	stepFailureHooksDone   = "FailureHooksDone"
	stepClusterSettled     = "ClusterSettled"
	stepPoolsReleased      = "PoolsReleased"
)

// delayed returns the steps that delay pools, for a step whose items are recorded.
func (s jobSteps) delayed(step string) pools.Delayed {
	d := pools.Delayed{
		Client: s.Client, Live: s.Live, Owner: s.poolOwner(), StartAfter: s.start, Entries: s.delays, Drains: s.jobDrains(),
		BeforeRelease: s.poolHooks(v1beta1.EventMachineConfigPoolUnpause),
		AfterUpdate:   s.poolHooks(v1beta1.EventMachineConfigPoolUpdated),
	}
	d.Known = pools.KnownPools(s.job.Status.MachineConfigPools)
	d.Recorded = s.recordedItems(step)
	return d
}

// recordedItems returns the items that the record holds of a step.
func (s jobSteps) recordedItems(step string) []history.StepItem {
	return s.record.Step(step).Items
}

func (s jobSteps) poolOwner() pools.Owner {
	return pools.Owner{JobUID: string(s.job.UID), Attempt: s.record.Attempt}
}

// poolDelays returns the entries of spec.config.machineConfigPools. An error means that the API server
// would not have accepted one of them.
func poolDelays(job *v1beta1.UpgradeJob) ([]pools.Delay, error) {
	var delays []pools.Delay
	for i := range job.Spec.Config.MachineConfigPools {
		entry := &job.Spec.Config.MachineConfigPools[i]
		delay, err := poolDelay(entry)
		if err != nil {
			return nil, fmt.Errorf("spec.config.machineConfigPools[%d]: %w", i, err)
		}
		delays = append(delays, delay)
	}
	return delays, nil
}

func poolDelay(entry *v1beta1.MachineConfigPoolConfig) (pools.Delay, error) {
	selector, err := maintenance.Selector(&entry.LabelSelector)
	if err != nil {
		return pools.Delay{}, err
	}
	earliest, err := maintenance.Duration(cmp.Or(entry.DelayUpgrade.DelayMin, entry.DelayUpgrade.StartAfter))
	if err != nil {
		return pools.Delay{}, err
	}
	latest, err := maintenance.Duration(cmp.Or(entry.DelayUpgrade.DelayMax, entry.DelayUpgrade.StartBefore))
	return pools.Delay{Selector: selector, Min: earliest, Max: latest}, err
}

// poolHooks returns the steps that run the hooks of an event of a pool.
func (s jobSteps) poolHooks(name v1beta1.HookEvent) func(pool string) engine.UpgradeStep {
	return func(pool string) engine.UpgradeStep {
		return func(ctx context.Context, run engine.Run) (engine.Result, error) {
			event := s.event(name, run)
			event.Pool = pool
			return s.Hooks.Event(s.job, s.record, event)(ctx, run)
		}
	}
}

// PoolsPaused pauses the pools that are delayed.
func (s jobSteps) PoolsPaused() engine.Step {
	return engine.Step{
		Name:  stepPoolsPaused,
		Doc:   "Pauses the machine config pools that are delayed. The upgrade is skipped if a pool is selected twice, or if it is that of the control plane.",
		Gates: []engine.Gate{{Name: "NotSuspended", Check: s.notSuspended}},
		Do: func(ctx context.Context, run engine.Run) (engine.Result, error) {
			if s.delayProblem != "" {
				return engine.Fail(reasonInvalidPools, "%s", s.delayProblem), nil
			}
			return s.delayed(stepPoolsPaused).Pause()(ctx, run)
		},
		PreCheck: s.validatePools,
	}
}

// validatePools is the pre-check of PoolsPaused.
func (s jobSteps) validatePools(ctx context.Context, _ engine.Run) (engine.Result, error) {
	problem, err := s.poolProblem(ctx)
	switch {
	case err != nil:
		return engine.Result{}, err
	case problem != "":
		return engine.Wait(reasonInvalidPools, "%s", problem), nil
	}
	return engine.Done("the entries are valid"), nil
}

// poolProblem returns what is wrong with the entries; empty means nothing. Without a version they do
// not matter.
func (s jobSteps) poolProblem(ctx context.Context) (string, error) {
	switch {
	case s.hooksOnly():
		return "", nil
	case s.delayProblem != "":
		return s.delayProblem, nil
	}
	return s.delayed(stepPoolsPaused).Validate(ctx)
}

// DelayedPoolsUpdated releases the pools that are delayed.
func (s jobSteps) DelayedPoolsUpdated() engine.Step {
	d := s.delayed(stepDelayedPoolsUpdate)
	return engine.Step{
		Name:      stepDelayedPoolsUpdate,
		Doc:       "Unpauses each delayed machine config pool in its time, after its hooks, and waits until all pools are updated.",
		Gates:     []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		Do:        d.Updated(),
		Reached:   all(d.AreUpdated, s.updateHooksSettled),
		Items:     s.hookItems(stepDelayedPoolsUpdate, v1beta1.EventMachineConfigPoolUnpause, v1beta1.EventMachineConfigPoolUpdated),
		Milestone: engine.MilestoneWorkersUpgraded,
		SlowAfter: s.Config.Workers.SlowAfter.Duration,
		FailBy:    s.failBy,
	}
}

// updateHooksSettled reports whether the hooks that have begun to run after the update of a pool have
// passed.
func (s jobSteps) updateHooksSettled(ctx context.Context) (bool, error) {
	return s.Hooks.Settled(ctx, s.job, s.record, v1beta1.EventMachineConfigPoolUpdated)
}

// PoolsPausedOnFailure pauses pools after a failure.
func (s jobSteps) PoolsPausedOnFailure() engine.Step {
	return engine.Step{
		Name: "PoolsPausedOnFailure",
		Doc:  "Pauses the machine config pools of pauseMachineConfigPoolsOnFailure if the upgrade failed after it had commenced.",
		Do: s.unlessNoUpdate(func(ctx context.Context, run engine.Run) (engine.Result, error) {
			selector := s.job.Spec.Config.PauseMachineConfigPoolsOnFailure
			if selector == nil {
				return engine.Skip("NotConfigured", "pauseMachineConfigPoolsOnFailure is not set"), nil
			}
			return pools.PauseOnFailure(s.Client, s.Live, s.poolOwner(), &selector.LabelSelector)(ctx, run)
		}),
		FailAfter: poolPauseTimeout,
	}
}

// poolPauseTimeout is how long pausing pools after a failure is tried.
const poolPauseTimeout = 15 * time.Minute

// keepReleasing returns the step of the cleanup that does what another one does. If the upgrade had
// commenced, delayed pools are released in their windows while that waits.
func (s jobSteps) keepReleasing(step string, do engine.UpgradeStep) engine.UpgradeStep {
	releasing := s.delayed(step).KeepReleasing(do)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !run.Committed || s.hooksOnly() {
			return do(ctx, run)
		}
		return releasing(ctx, run)
	}
}

// PoolsReleased releases the pools of an upgrade that failed.
func (s jobSteps) PoolsReleased() engine.Step {
	return engine.Step{
		Name: stepPoolsReleased,
		Doc:  "Unpauses the delayed machine config pools: at once if the upgrade had not commenced (tried for 15m), otherwise in their time.",
		Do:   s.unlessNoUpdate(s.delayed(stepPoolsReleased).Released()),
	}
}

// unlessNoUpdate skips a step of the cleanup if there is no version.
func (s jobSteps) unlessNoUpdate(do engine.UpgradeStep) engine.UpgradeStep {
	if s.hooksOnly() {
		return skipWithoutUpdate
	}
	return do
}

// PoolStatus returns the state of the pools that an attempt delays or has paused; nothing before it
// begins to pause them.
func (j Job) PoolStatus(ctx context.Context, job *v1beta1.UpgradeJob, record history.Record, now time.Time) ([]v1beta1.MachineConfigPoolStatus, error) {
	if record.Step(stepPoolsPaused).Type == "" {
		return nil, nil
	}
	return newJobSteps(j.Deps, job, record).delayed(stepPoolsPaused).Status(ctx, now)
}

// PoolStatusAfterEnd returns the state of the pools of the attempts of an UpgradeJob, all of which are
// over: pools that it still has paused are listed until they are unpaused. It returns when that may
// change next without a change of a pool, too; the zero time means never.
func (j Job) PoolStatusAfterEnd(
	ctx context.Context, job *v1beta1.UpgradeJob, record history.Record, now time.Time,
) ([]v1beta1.MachineConfigPoolStatus, time.Time, error) {
	return newJobSteps(j.Deps, job, record).delayed(stepPoolsPaused).StatusAfterEnd(ctx, job.Status.MachineConfigPools, now)
}

// PoolProblem returns why the entries of spec.config.machineConfigPools do not suit the pools of the
// cluster; empty means that they do.
func (j Job) PoolProblem(ctx context.Context, job *v1beta1.UpgradeJob) (string, error) {
	return newJobSteps(j.Deps, job, history.Record{}).poolProblem(ctx)
}
