// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/pools"
)

// poolDelays returns the entries of spec.config.machineConfigPools. It returns an error if the API server would
// not have accepted one of them.
func poolDelays(job *maintenancev1beta1.UpgradeJob) ([]pools.Delay, error) {
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

func poolDelay(entry *maintenancev1beta1.MachineConfigPoolConfig) (pools.Delay, error) {
	selector, err := maintenance.Selector(entry.Selector())
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

// PoolsPaused pauses the delayed pools.
func (s jobSteps) PoolsPaused() engine.Step {
	step := s.base.PoolsPaused()
	pause := step.Do
	step.Gates = []engine.Gate{{Name: stepNotSuspended, Check: s.notSuspended}}
	step.Do = func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if s.delayProblem != "" {
			return engine.Fail(reasonInvalidPools, "%s", s.delayProblem), nil
		}
		return pause(ctx, run)
	}
	step.PreCheck = s.validatePools
	return step
}

// validatePools is the pre-check of PoolsPaused. Without a version, the entries do not matter.
func (s jobSteps) validatePools(ctx context.Context, run engine.Run) (engine.Result, error) {
	switch {
	case s.hooksOnly():
		return skipWithoutUpdate(ctx, run)
	case s.delayProblem != "":
		return engine.Wait(reasonInvalidPools, "%s", s.delayProblem), nil
	}
	return s.advise(ctx, run)
}

// PoolsPausedOnFailure pauses pools after a failure.
func (s jobSteps) PoolsPausedOnFailure() engine.Step {
	configured := s.job.Spec.Config.PauseMachineConfigPoolsOnFailure
	if configured == nil {
		return s.base.PoolsPausedOnFailure("", nil)
	}
	return s.base.PoolsPausedOnFailure("spec.config.pauseMachineConfigPoolsOnFailure", configured.Selector())
}

// PoolStatus returns the state of the pools that an attempt delays or has paused. It returns nothing before
// PoolsPaused begins.
func (j Job) PoolStatus(ctx context.Context, job *maintenancev1beta1.UpgradeJob, record history.Record, now time.Time) ([]maintenancev1beta1.MachineConfigPoolStatus, error) {
	if record.Step(stepPoolsPaused).Type == "" {
		return nil, nil
	}
	return newJobSteps(j.Deps, job, record).delayed(stepPoolsPaused).Status(ctx, now)
}

// PoolStatusAfterEnd returns the state of the pools of an UpgradeJob whose attempts are all over. Pools that it
// still pauses are listed until they are unpaused. It also returns when that may change without a change of a
// pool, or zero for never.
func (j Job) PoolStatusAfterEnd(
	ctx context.Context, job *maintenancev1beta1.UpgradeJob, record history.Record, now time.Time,
) ([]maintenancev1beta1.MachineConfigPoolStatus, time.Time, error) {
	return newJobSteps(j.Deps, job, record).delayed(stepPoolsPaused).StatusAfterEnd(ctx, job.Status.MachineConfigPools, now)
}

// ConfigProblem returns why spec.config is invalid or does not suit the pools of the cluster: a reason and a
// message, or empty strings. It only warns: the step that the problem concerns ends the upgrade, if at all.
func (j Job) ConfigProblem(ctx context.Context, job *maintenancev1beta1.UpgradeJob, now time.Time) (reason, message string, err error) {
	if problem := j.objectsProblem(job); problem != "" {
		return ReasonInvalidHealthChecks, problem, nil
	}
	record := history.Record{}
	if latest := maintenance.LatestAttempt(job); latest != nil {
		record = *latest
	}
	result, err := newJobSteps(j.Deps, job, record).validatePools(ctx, engine.Run{Now: now})
	if err != nil || result.Passed() {
		return "", "", err
	}
	return result.Reason(), result.Message(), nil
}
