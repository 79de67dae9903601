// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// progress is the result of a pass over the delayed pools.
type progress struct {
	later, releasing, missed, updating []delayedPool
	again                              time.Duration // the maximum delay until the next call; 0 if a change of the cluster triggers it
	hooks                              string        // what the hooks are waiting for
	failed                             *engine.Result
	items                              []history.StepItem
	errs                               []error
}

// release releases the pools that may be released now. It is called after the upgrade has
// commenced.
func (d Delayed) release(ctx context.Context, run engine.Run, pools []delayedPool) progress {
	var p progress
	live := sync.OnceValues(func() (checks.Rollout, error) { return checks.GetRollout(ctx, d.Live) })
	for _, pool := range pools {
		upToDate, err := pool.isConfirmedUpToDate(live)
		p.errs = append(p.errs, err)
		switch release := clusterstate.ReleaseOf(pool.Pool, upToDate, run.Now); release.State {
		case clusterstate.ReleaseLater:
			p.later = append(p.later, pool)
			p.within(release.At.Sub(run.Now))
		case clusterstate.ReleaseMissed:
			p.missed = append(p.missed, pool)
		case clusterstate.ReleaseNow:
			p.releasing = append(p.releasing, pool)
			p.within(release.At.Sub(run.Now))
			d.releaseNow(ctx, run, pool, release, &p)
		case clusterstate.ReleaseKept, clusterstate.ReleaseNotOurs:
		}
	}
	return p
}

// isConfirmedUpToDate reports whether a delayed pool has nothing to update. The API server confirms
// that: until the cache shows that the upgrade has commenced, every pool is up to date.
func (p *delayedPool) isConfirmedUpToDate(live func() (checks.Rollout, error)) (bool, error) {
	if !p.upToDate || !p.Delayed() {
		return false, nil
	}
	rollout, err := live()
	return err == nil && rollout.UpToDate(p.Name), err
}

// releaseNow releases a pool once its hooks have passed. A pool with nothing to update does not
// wait for them. If a hook fails that aborts the upgrade, only a user unpauses the pool. The
// failure is recorded only after the mark of the pool shows that, because until then the Job of the
// hook, and with it the failure policy, is kept.
func (d Delayed) releaseNow(ctx context.Context, run engine.Run, pool delayedPool, release clusterstate.PoolRelease, p *progress) {
	if !release.UpToDate {
		result, err := p.call(ctx, run, d.BeforeRelease, pool.Name)
		switch {
		case err != nil:
			p.errs = append(p.errs, err)
			return
		case result.Failed():
			applied, err := pause(ctx, d.Client, pool.Pool, keptMark(d.Owner, run.Now))
			p.errs = append(p.errs, err)
			switch {
			case !applied:
				p.items = p.items[:len(p.items)-len(result.Items())]
				p.within(retryInterval)
			case p.failed == nil:
				p.failed = &result
			}
			return
		case !result.Passed():
			return
		case !d.recorded(result.Items()):
			p.within(time.Second)
			return
		}
	}
	_, err := Release(ctx, d.Client, pool.Pool)
	p.errs = append(p.errs, err)
	p.within(retryInterval)
}

// within makes sure that the next call is no later than after.
func (p *progress) within(after time.Duration) {
	if after > 0 && (p.again == 0 || after < p.again) {
		p.again = after
	}
}

// recorded reports whether the record of the attempt has the final state of all items. The hooks of
// a pool are not called again after its release, so their results must be saved first.
func (d Delayed) recorded(items []history.StepItem) bool {
	return !slices.ContainsFunc(items, func(item history.StepItem) bool {
		return !slices.ContainsFunc(d.Recorded, func(r history.StepItem) bool { return r.Name == item.Name && r.Ended() })
	})
}

// call calls the step of a pool's hooks and collects its results.
func (p *progress) call(ctx context.Context, run engine.Run, hooks func(string) engine.UpgradeStep, pool string) (engine.Result, error) {
	if hooks == nil {
		return engine.Skip(maintenance.ReasonNoHooks, "there are no hooks"), nil
	}
	result, err := hooks(pool)(ctx, run)
	if err != nil {
		return result, err
	}
	p.items = append(p.items, result.Items()...)
	if !result.Passed() {
		p.within(result.After())
		p.hooks = cmp.Or(p.hooks, "pool "+text.WithReason(pool, result.Message()))
	}
	return result, nil
}

// withItems returns the result with the items of the hooks. Recorded items are kept, unless a newer
// item replaces them as a whole.
func (d Delayed) withItems(result engine.Result, p progress) engine.Result {
	items := slices.Concat(p.items, result.Items())
	for _, recorded := range d.Recorded {
		if !slices.ContainsFunc(items, func(item history.StepItem) bool { return strings.HasPrefix(recorded.Name, item.Name+"/") }) {
			items = append(items, recorded)
		}
	}
	if len(items) == 0 {
		return result
	}
	return result.WithItems(items...)
}

// KeepReleasing returns a step that calls another step, and releases pools in their windows while
// that step waits. It never blocks the other step; the message reports problems.
func (d Delayed) KeepReleasing(do engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := do(ctx, run)
		if err == nil && (result.Passed() || result.Failed()) {
			return d.withItems(result, progress{}), nil
		}
		s, surveyErr := d.survey(ctx, d.Client)
		if surveyErr != nil {
			return result, errors.Join(err, surveyErr)
		}
		p := d.release(ctx, run, s.pools)
		if releaseErr := errors.Join(p.errs...); err != nil || releaseErr != nil {
			return result, errors.Join(err, releaseErr)
		}
		if result.IsZero() {
			result = engine.Wait(reasonUpdating, "waiting")
		}
		return d.withItems(result.NoLaterThan(p.again), p), nil
	}
}

// Undelayed waits until all pools that are not delayed are updated. A paused pool counts as updated
// if all its machines are.
func (d Delayed) Undelayed() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		s, err := d.survey(ctx, d.Client)
		if err != nil {
			return engine.Result{}, err
		}
		if result, waits := d.wait(ctx, run, s, s.undelayed()); waits {
			return result, nil
		}
		return engine.Done("all machine config pools that are not delayed are updated"), nil
	}
}

// undelayed returns the pools that need an update and are not delayed.
func (s survey) undelayed() []*clusterstate.PoolProgress {
	var undelayed []*clusterstate.PoolProgress
	for _, pending := range s.Outdated() {
		if s.delayed(pending.Pool.Name) == nil {
			undelayed = append(undelayed, pending)
		}
	}
	return undelayed
}

func (s survey) delayed(name string) *delayedPool {
	for i := range s.pools {
		if s.pools[i].Name == name {
			return &s.pools[i]
		}
	}
	return nil
}

// wait returns a result that waits for pools that need an update. Pools that are being updated take
// precedence over pools that a user paused.
func (d Delayed) wait(ctx context.Context, run engine.Run, s survey, outdated []*clusterstate.PoolProgress) (engine.Result, bool) {
	if s.OperatorBehind != "" {
		return engine.Wait(reasonUpdating, "%s", s.OperatorBehind), true
	}
	var active []*clusterstate.PoolProgress
	var users []string
	for _, pending := range outdated {
		if pending.Pool.Paused {
			users = append(users, pending.Pool.Name)
			continue
		}
		active = append(active, pending)
	}
	switch {
	case len(active) > 0:
		return waitForPools(ctx, run, d.Drains, active), true
	case len(users) > 0:
		return engine.Wait(ReasonPausedByUser, "machine config pools paused: %s; set spec.paused of the MachineConfigPool to false to update its nodes", text.JoinNames(users)), true
	}
	return engine.Result{}, false
}

// Updated waits until the delayed pools are released and all pools are updated.
func (d Delayed) Updated() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		s, err := d.survey(ctx, d.Client)
		if err != nil {
			return engine.Result{}, err
		}
		p := d.release(ctx, run, s.pools)
		d.afterUpdate(ctx, run, s, &p)
		result, err := d.updated(ctx, run, s, p)
		if err != nil {
			return engine.Result{}, err
		}
		return d.withItems(result, p), nil
	}
}

// afterUpdate calls the hooks of updated pools.
func (d Delayed) afterUpdate(ctx context.Context, run engine.Run, s survey, p *progress) {
	for _, pool := range s.pools {
		if pool.Paused || !pool.upToDate {
			continue
		}
		result, err := p.call(ctx, run, d.AfterUpdate, pool.Name)
		p.errs = append(p.errs, err)
		switch {
		case err != nil || result.Passed():
		case result.Failed() && p.failed == nil:
			p.failed = &result
		default:
			p.updating = append(p.updating, pool)
		}
	}
}

// updated returns the result of a pass over all pools.
func (d Delayed) updated(ctx context.Context, run engine.Run, s survey, p progress) (engine.Result, error) {
	kept := names(s.pools, func(pool delayedPool) bool { return pool.ours && pool.PausedByMark() && pool.Mark.Kept() })
	if err := errors.Join(p.errs...); err != nil {
		return engine.Result{}, err
	}
	outdated := s.outdatedAnd(func(pool delayedPool) bool { return !pool.Delayed() })
	waiting, waits := d.wait(ctx, run, s, outdated)
	switch {
	case p.failed != nil:
		return *p.failed, nil
	case len(kept) > 0:
		return engine.Fail(maintenance.ReasonHookFailed, "machine config pools stay paused: %s; a hook before their release failed: %s", text.JoinNames(kept), remedy), nil
	case len(p.missed) > 0:
		return d.missed(p), nil
	case len(p.releasing) > 0 || len(p.updating) > 0:
		message := p.hooks
		if message == "" {
			message = "unpausing machine config pools: " + text.JoinNames(names(p.releasing, all))
		}
		return engine.Wait(reasonReleasing, "%s", message).NoLaterThan(p.again), nil
	case waits && waiting.Reason() != ReasonPausedByUser:
		return waiting.NoLaterThan(p.again), nil
	case len(p.later) > 0:
		message := releaseTimes(p.later)
		if waits {
			message += "; " + waiting.Message()
		}
		return untilRelease(p, message), nil
	case waits:
		return waiting, nil
	}
	return engine.Done("all %d machine config pools are updated", len(s.Pools)), nil
}

// untilRelease waits for the next release. No heartbeat is needed until then, because the record
// has the time.
func untilRelease(p progress, message string) engine.Result {
	next := p.later[0].Mark.ReleaseAfter
	for _, pool := range p.later {
		if pool.Mark.ReleaseAfter.Before(next) {
			next = pool.Mark.ReleaseAfter
		}
	}
	return engine.WaitUntil(next, ReasonDelaySet, "%s", message).NoLaterThan(p.again)
}

func all(delayedPool) bool { return true }

// remedy tells users how to update a pool that the operator leaves paused.
const remedy = `set spec.paused of the MachineConfigPool to false to update its nodes`

// outdatedAnd returns the pools that need an update and that are either not delayed or satisfy a
// condition.
func (s survey) outdatedAnd(is func(delayedPool) bool) []*clusterstate.PoolProgress {
	var some []*clusterstate.PoolProgress
	for _, pending := range s.Outdated() {
		if pool := s.delayed(pending.Pool.Name); pool == nil || is(*pool) {
			some = append(some, pending)
		}
	}
	return some
}

// missed returns the failure for pools whose window ended before they were released.
func (d Delayed) missed(p progress) engine.Result {
	return engine.Fail(ReasonUnpausingPoolsExpired, "machine config pools could not be unpaused in time and stay paused: %s; %s",
		text.JoinNames(names(p.missed, all)), remedy)
}

// releaseTimes describes when each pool is released.
func releaseTimes(pools []delayedPool) string {
	var times []string
	for _, pool := range pools {
		times = append(times, "pool "+pool.Name+" is released at "+text.FormatTime(pool.Mark.ReleaseAfter))
	}
	return text.JoinNames(times)
}
