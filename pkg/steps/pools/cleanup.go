// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// undoTimeout limits how long the operator tries to release the pools of an attempt that has not
// commenced. The lock is held for this time. After that, controller poolrelease releases the pools.
const undoTimeout = 15 * time.Minute

// Released releases the pools that a failed attempt has paused. If the attempt had commenced, each
// pool is released in its window, after its hooks. Otherwise, pools are released at once, except
// for pools with nodes that need an update: these stay paused until their window, and controller
// poolrelease then releases them. That controller also releases pools that cannot be released
// within undoTimeout, or within the longest delay if the attempt had commenced.
func (d Delayed) Released() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		timeout, release := undoTimeout, d.undoPause
		if run.Committed {
			timeout, release = d.longestDelay(), d.releaseAsPlanned
		}
		result, err := release(ctx, run)
		left := run.Since.Add(timeout).Sub(run.Now)
		switch {
		case err == nil && (result.Passed() || result.Failed()):
			return result, nil
		case left <= 0 && err != nil:
			return timedOut(timeout, text.Excerpt(err.Error())), nil
		case left <= 0:
			return timedOut(timeout, result.Message()), nil
		}
		return result.NoLaterThan(left), err
	}
}

// longestDelay returns how long the release of pools may take after the commit. The windows of this
// attempt end earlier. A pool that an earlier attempt left paused has no window, and its hooks may
// never end.
func (d Delayed) longestDelay() time.Duration {
	longest := undoTimeout
	for i := range d.Entries {
		longest = max(longest, d.Entries[i].Max)
	}
	return longest
}

func (d Delayed) releaseAsPlanned(ctx context.Context, run engine.Run) (engine.Result, error) {
	s, err := d.survey(ctx, d.Client)
	if err != nil {
		return engine.Result{}, err
	}
	p := d.release(ctx, run, s.pools)
	if err := errors.Join(p.errs...); err != nil {
		return engine.Result{}, err
	}
	return d.withItems(d.released(p), p), nil
}

func (d Delayed) released(p progress) engine.Result {
	switch {
	case len(p.releasing) > 0 && p.hooks != "":
		return engine.Wait(reasonReleasing, "%s", p.hooks).NoLaterThan(p.again)
	case len(p.releasing) > 0:
		return engine.Wait(reasonReleasing, "unpausing machine config pools: %s", text.JoinNames(names(p.releasing, all))).NoLaterThan(p.again)
	case len(p.later) > 0:
		return untilRelease(p, releaseTimes(p.later))
	case len(p.missed) > 0:
		return d.missed(p)
	}
	return engine.Done("the upgrade no longer delays any machine config pool")
}

func timedOut(timeout time.Duration, last string) engine.Result {
	return engine.Fail(reasonTimedOut, "machine config pools could not be unpaused within %s: %s; they are unpaused when they have nothing to update, or in release windows that have not ended", timeout, last)
}

// undoPause releases the pools of an attempt that has not commenced. It confirms with the API
// server that no pool remains, because the cache may lack a pause whose response was lost. An
// update that another client has started counts as one that the nodes need.
func (d Delayed) undoPause(ctx context.Context, _ engine.Run) (engine.Result, error) {
	version, err := clusterstate.GetClusterVersion(ctx, d.Live)
	if err != nil {
		return engine.Result{}, err
	}
	_, updating := version.UpdatingTo()
	pools, err := clusterstate.ListPools(ctx, d.Live)
	if err != nil {
		return engine.Result{}, err
	}
	nodes, err := clusterstate.ListNodes(ctx, d.Client)
	if err != nil {
		return engine.Result{}, err
	}
	rollout := checks.RolloutOf(pools, nodes)
	var errs []error
	var releasing, unobserved, left []string
	for _, pool := range pools {
		switch {
		case !d.owns(pool) || !pool.Delayed():
		case !pool.Observed:
			unobserved = append(unobserved, pool.Name)
		case updating || !rollout.UpToDate(pool.Name):
			left = append(left, pool.Name)
		default:
			releasing = append(releasing, pool.Name)
			_, err := Release(ctx, d.Client, pool)
			errs = append(errs, err)
		}
	}
	switch err := errors.Join(errs...); {
	case err != nil:
		return engine.Result{}, err
	case len(releasing) > 0:
		return engine.WaitFor(retryInterval, reasonReleasing, "unpausing machine config pools: %s", text.JoinNames(releasing)), nil
	case len(unobserved) > 0:
		return engine.Wait(reasonNotObserved, "the machine config operator has not yet observed that these pools are paused: %s", text.JoinNames(unobserved)), nil
	case len(left) > 0:
		return engine.Done("machine config pools with nodes to update are unpaused in their release windows: %s", text.JoinNames(left)), nil
	}
	return engine.Done("no machine config pool is paused for this upgrade"), nil
}
