// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
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

// recordedItems returns the recorded items of a step.
func (s base) recordedItems(step string) []history.StepItem {
	return s.record.Step(step).Items
}

// pauseReasons are the reasons of waiting steps that pause an upgrade.
func pauseReasons() []string { return []string{pools.ReasonDelaySet, pools.ReasonPausedByUser} }

// delayed returns the steps that delay pools, for a step with recorded items.
func (s base) delayed(step string) pools.Delayed {
	return pools.Delayed{
		Client: s.Client, Live: s.Live, Owner: s.owner, StartAfter: s.start, Entries: s.delays, Source: s.delaySource, Drains: s.drains,
		BeforeRelease: func(pool string) engine.UpgradeStep {
			return s.runHooksOf(maintenancev1beta1.EventMachineConfigPoolUnpause, pool)
		},
		AfterUpdate: func(pool string) engine.UpgradeStep {
			return s.runHooksOf(maintenancev1beta1.EventMachineConfigPoolUpdated, pool)
		},
		Known: s.knownPools, Recorded: s.recordedItems(step),
	}
}

// PoolsPaused pauses the delayed pools.
func (s base) PoolsPaused() engine.Step {
	return engine.Step{
		Name:     stepPoolsPaused,
		Doc:      "Pauses the machine config pools that are delayed. It fails if a pool is selected twice, if the upgrade requires it, or if its window has passed.",
		Do:       s.delayed(stepPoolsPaused).Pause(),
		PreCheck: s.advise,
	}
}

// advise is the pre-check of PoolsPaused.
func (s base) advise(ctx context.Context, run engine.Run) (engine.Result, error) {
	return s.delayed(stepPoolsPaused).Advise(ctx, run.Now)
}

// addedPoolsPaused is a gate of the committing step behind PoolsPaused.
func (s base) addedPoolsPaused() engine.Gate {
	return engine.Gate{Name: "AddedPoolsPaused", Check: s.delayed(stepPoolsPaused).PauseAdded()}
}

// releasing wraps a step behind the commit: while it waits, delayed pools are released in their time.
func (s base) releasing(step engine.Step) engine.Step {
	step.Do = s.delayed(step.Name).KeepReleasing(step.Do)
	step.Items = s.hookItems(step.Name, maintenancev1beta1.EventMachineConfigPoolUnpause)
	return step
}

// DelayedPoolsUpdated releases the delayed pools.
func (s base) DelayedPoolsUpdated() engine.Step {
	d := s.delayed(stepDelayedPoolsUpdate)
	return engine.Step{
		Name:       stepDelayedPoolsUpdate,
		Doc:        "Unpauses each delayed machine config pool as planned, after its hooks, and waits until all pools are updated.",
		Gates:      []engine.Gate{{Name: "NotSuperseded", Check: s.notSuperseded}},
		Do:         d.Updated(),
		Repeatable: true,
		Reached:    all(d.AreUpdated, s.updateHooksSettled),
		Items:      s.hookItems(stepDelayedPoolsUpdate, maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventMachineConfigPoolUpdated),
		Milestone:  engine.MilestoneWorkersUpgraded,
		SlowAfter:  s.Config.Workers.SlowAfter.Duration,
		FailBy:     s.failBy,
	}
}

// updateHooksSettled reports whether all started hooks for updated pools have passed.
func (s base) updateHooksSettled(ctx context.Context) (bool, error) {
	if s.Hooks == nil {
		return true, nil
	}
	return s.Hooks.Settled(ctx, s.owner, s.record, maintenancev1beta1.EventMachineConfigPoolUpdated)
}

// PoolsPausedOnFailure pauses the pools of a selector after a failure, until a user unpauses them. The selector
// may be nil. Source is its name in messages.
func (s base) PoolsPausedOnFailure(source string, selector *maintenancev1beta1.LabelSelector) engine.Step {
	pause := pools.PauseOnFailure(s.Client, s.Live, s.owner, source, selector)
	if selector == nil {
		pause = func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip("NotConfigured", "pauseMachineConfigPoolsOnFailure is not set"), nil
		}
	}
	return engine.Step{
		Name:      "PoolsPausedOnFailure",
		Doc:       "Pauses the machine config pools of pauseMachineConfigPoolsOnFailure if the upgrade failed after it had commenced.",
		Do:        s.unlessNoUpdate(pause),
		FailAfter: poolPauseTimeout,
	}
}

// poolPauseTimeout bounds the tries to pause pools after a failure.
const poolPauseTimeout = 15 * time.Minute

// keepReleasing wraps a step of the cleanup: if the upgrade had commenced, delayed pools are released in their
// windows while the step waits.
func (s base) keepReleasing(step string, do engine.UpgradeStep) engine.UpgradeStep {
	releasing := s.delayed(step).KeepReleasing(do)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if !run.Committed || s.hooksOnly() {
			return do(ctx, run)
		}
		return releasing(ctx, run)
	}
}

// PoolsReleased releases the pools of an upgrade that failed.
func (s base) PoolsReleased() engine.Step {
	return engine.Step{
		Name: stepPoolsReleased,
		Doc:  "Unpauses the delayed machine config pools: immediately if the upgrade had not commenced (tried for 15m), otherwise as planned.",
		Do:   s.unlessNoUpdate(s.delayed(stepPoolsReleased).Released()),
	}
}

// unlessNoUpdate skips a step of the cleanup if there is no version.
func (s base) unlessNoUpdate(do engine.UpgradeStep) engine.UpgradeStep {
	if s.hooksOnly() {
		return skipWithoutUpdate
	}
	return do
}
