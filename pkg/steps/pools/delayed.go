// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reasons of results. An upgrade counts as paused for ReasonDelaySet and ReasonPausedByUser.
const (
	ReasonDelaySet              = "DelaySet"
	ReasonPausedByUser          = "PausedByUser"
	ReasonInvalidPools          = "InvalidPools"
	ReasonNoPoolSelected        = "NoPoolSelected"
	ReasonUnpausingPoolsExpired = "UnpausingPoolsExpired"

	reasonPoolPaused  = "PoolPaused"
	reasonPausing     = "PausingPools"
	reasonReleasing   = "ReleasingPools"
	reasonUpdating    = "PoolsUpdating"
	reasonNotObserved = "PoolsNotObserved"
	reasonTimedOut    = "TimedOut"
)

// Delay selects pools and holds how long after the start of the upgrade they are released.
type Delay struct {
	Selector labels.Selector
	Min, Max time.Duration
}

// Delayed provides the steps that pause pools for one attempt and release them later. Releasing a
// pool unpauses it and removes the mark.
type Delayed struct {
	// Client reads from the cache and writes to the API server. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Owner  maintenance.Owner
	// StartAfter is the time that delays are relative to.
	StartAfter time.Time
	Entries    []Delay
	// Source is the name of the list of entries in messages.
	Source string
	// BeforeRelease returns a step that must pass before a pool is released, and AfterUpdate one
	// that must pass after the pool is updated. If the former fails, its pool stays paused until a
	// user unpauses it. Both are optional.
	BeforeRelease, AfterUpdate func(pool string) engine.UpgradeStep
	// Recorded holds the recorded items of the attempt's steps that release pools. They stay part
	// of the results, because the engine replaces the items of a step with each result, and the
	// hooks of a pool are not called again after its release.
	Recorded []history.StepItem
	// Known lists the pools that the attempt has delayed so far; see KnownPools. A pool stays in
	// the list even if another client changes its labels.
	Known []string
	// Drains explains what holds up drains of nodes; the zero Drains explains nothing.
	Drains checks.Drains
	// over reports that no attempt will release pools, so abandoned pools stay paused.
	over bool
}

// survey is a snapshot of the state of all pools.
type survey struct {
	checks.Rollout
	pools []delayedPool
}

// delayedPool is a pool that an entry selects, or that the operator has paused or had paused
// before.
type delayedPool struct {
	clusterstate.Pool
	selected *Delay // nil if no entry currently selects it
	ours     bool   // this attempt paused it
	upToDate bool
}

func (d Delayed) survey(ctx context.Context, r client.Reader) (survey, error) {
	rollout, err := checks.GetRollout(ctx, r)
	if err != nil {
		return survey{}, err
	}
	s := survey{Rollout: rollout}
	for i := range rollout.Pools {
		pool := rollout.Pools[i].Pool
		p := delayedPool{Pool: pool, ours: d.owns(pool), upToDate: rollout.UpToDate(pool.Name)}
		if p.selected, err = d.selecting(pool); err != nil {
			return survey{}, err
		}
		if p.selected == nil && !pool.PausedByMark() && !slices.Contains(d.Known, pool.Name) {
			continue
		}
		p.Mark = d.trusted(p)
		s.pools = append(s.pools, p)
	}
	return s, nil
}

// selecting returns the entry that selects a pool; nil if none does.
func (d Delayed) selecting(pool clusterstate.Pool) (*Delay, error) {
	if pool.LabelsTooLong && len(d.Entries) > 0 {
		return nil, fmt.Errorf("the labels of machine config pool %s are too long to decide whether it is delayed", pool.Name)
	}
	for i := range d.Entries {
		if d.Entries[i].Selector.Matches(labels.Set(pool.Labels)) {
			return &d.Entries[i], nil
		}
	}
	return nil, nil
}

// owns reports whether the mark of a pool belongs to this attempt.
func (d Delayed) owns(pool clusterstate.Pool) bool {
	return pool.Mark != nil && pool.Mark.OwnerUID == string(d.Owner.UID) && pool.Mark.Attempt == d.Owner.Attempt
}

// mark returns this attempt's mark for the pools of an entry.
func (d Delayed) mark(entry *Delay) clusterstate.PoolMark {
	return clusterstate.PoolMark{
		OwnerUID: string(d.Owner.UID), Attempt: d.Owner.Attempt,
		ReleaseAfter: wholeSecond(d.StartAfter.Add(entry.Min)), ReleaseBefore: d.StartAfter.Add(entry.Max).Truncate(time.Second),
	}
}

// keptMark returns an attempt's mark for a pool that only a user unpauses.
func keptMark(owner maintenance.Owner, now time.Time) clusterstate.PoolMark {
	return clusterstate.PoolMark{OwnerUID: string(owner.UID), Attempt: owner.Attempt, KeptSince: now.Truncate(time.Second)}
}

// wholeSecond rounds up, because marks hold whole seconds and no pool may be released early.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// trusted returns the mark that determines the release of a pool. If the window in a mark of this
// attempt differs from the window of its entry, the mark was changed; the pool is then only
// released when both windows allow it. A mark left behind by an earlier upgrade has no end, because
// this upgrade has commenced and releases the pool.
func (d Delayed) trusted(p delayedPool) *clusterstate.PoolMark {
	if p.Mark == nil || p.Mark.Kept() {
		return p.Mark
	}
	mark := *p.Mark
	switch {
	case !p.ours && !d.over:
		mark.ReleaseBefore = endless
	case !p.ours: // controller poolrelease honors the mark as is
	case p.selected != nil:
		want := d.mark(p.selected)
		if want.ReleaseAfter.After(mark.ReleaseAfter) {
			mark.ReleaseAfter = want.ReleaseAfter
		}
		if want.ReleaseBefore.Before(mark.ReleaseBefore) {
			mark.ReleaseBefore = want.ReleaseBefore
		}
	}
	return &mark
}

var endless = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Validate returns the problem with the entries for the pools of the cluster; empty if there is
// none. A pool may be selected only once, and pools that the upgrade requires must not be selected.
func (d Delayed) Validate(ctx context.Context) (string, error) {
	if len(d.Entries) == 0 {
		return "", nil
	}
	pools, err := clusterstate.ListPools(ctx, d.Client)
	if err != nil {
		return "", err
	}
	var tooLong, control, twice []string
	for _, pool := range pools {
		matches := 0
		for i := range d.Entries {
			if d.Entries[i].Selector.Matches(labels.Set(pool.Labels)) {
				matches++
			}
		}
		switch {
		case pool.LabelsTooLong:
			tooLong = append(tooLong, pool.Name)
		case matches > 0 && pool.Required():
			control = append(control, pool.Name)
		case matches > 1:
			twice = append(twice, pool.Name)
		}
	}
	switch {
	case len(tooLong) > 0:
		return "the labels of machine config pool " + text.JoinNames(tooLong) + " are too long to decide whether it is delayed: remove some", nil
	case len(control) > 0:
		return d.Source + " selects machine config pool " + text.JoinNames(control) + ", which cannot be delayed: the machine config operator must update it for the upgrade to complete", nil
	case len(twice) > 0:
		return "several entries of " + d.Source + " select machine config pool " + text.JoinNames(twice) + ": only one may", nil
	}
	return "", nil
}
