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

// The reasons of the results. An upgrade counts as paused for ReasonDelaySet and
// ReasonPausedByUser.
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

// Delay selects pools, and describes how long after the start of the upgrade they are released.
type Delay struct {
	Selector labels.Selector
	Min, Max time.Duration
}

// Delayed has the steps that pause pools and release them later, for one attempt. To
// release a pool is to unpause it and to remove the mark.
type Delayed struct {
	// Client reads from the cache and writes to the API server; Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Owner  maintenance.Owner
	// StartAfter is the time to which the delays are relative.
	StartAfter time.Time
	Entries    []Delay
	// Source is how messages name the list of entries.
	Source string
	// BeforeRelease returns the step that must pass before a pool is released, AfterUpdate the one that
	// must pass once it is updated. If the former fails, its pool stays paused until a user unpauses it.
	// Nil means nothing is done then.
	BeforeRelease, AfterUpdate func(pool string) engine.UpgradeStep
	// Recorded are the items that the record of the attempt holds of the steps that release pools. They
	// stay part of the results: the engine replaces the items of a step with each result, and the hooks
	// of a pool are not called again once it is released.
	Recorded []history.StepItem
	// Known are the names of the pools that the attempt has delayed so far, see KnownPools. A pool stays
	// one of them although another client changes its labels.
	Known []string
	// Drains explains what holds the drains of nodes; the zero Drains explains none.
	Drains checks.Drains
	// over reports that no attempt will release pools: pools that one has left behind stay paused.
	over bool
}

// survey is the state of all pools at one moment.
type survey struct {
	checks.Rollout
	pools []delayedPool
}

// delayedPool is a pool that an entry selects, or that the operator has or had paused.
type delayedPool struct {
	clusterstate.Pool
	selected *Delay // nil if no entry selects it now
	ours     bool   // this attempt has paused it
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

// selecting returns the entry that selects a pool; nil means none.
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

// mark returns the mark of this attempt for the pools of an entry.
func (d Delayed) mark(entry *Delay) clusterstate.PoolMark {
	return clusterstate.PoolMark{
		OwnerUID: string(d.Owner.UID), Attempt: d.Owner.Attempt,
		ReleaseAfter: wholeSecond(d.StartAfter.Add(entry.Min)), ReleaseBefore: d.StartAfter.Add(entry.Max).Truncate(time.Second),
	}
}

// keptMark returns the mark of an attempt for a pool that only a user unpauses.
func keptMark(owner maintenance.Owner, now time.Time) clusterstate.PoolMark {
	return clusterstate.PoolMark{OwnerUID: string(owner.UID), Attempt: owner.Attempt, KeptSince: now.Truncate(time.Second)}
}

// wholeSecond rounds up: the mark holds whole seconds, and no pool is released early.
func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// trusted returns the mark by which the release of a pool is decided. If the window in a mark of this attempt differs
// from the window of the entry, the mark was changed: the pool is not released earlier than either allows. A mark that
// an earlier upgrade left behind has no end: its pool is released by this upgrade, which has commenced.
func (d Delayed) trusted(p delayedPool) *clusterstate.PoolMark {
	if p.Mark == nil || p.Mark.Kept() {
		return p.Mark
	}
	mark := *p.Mark
	switch {
	case !p.ours && !d.over:
		mark.ReleaseBefore = endless
	case !p.ours: // the controller poolrelease honors the mark as it is
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

// Validate returns what is wrong with the entries for the pools of the cluster; empty means nothing. A
// pool may be selected once, and one that the upgrade requires not at all.
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
