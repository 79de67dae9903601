// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// retryInterval is the delay before the state is read again after a request. Usually, the change of
// the pool triggers that earlier.
const retryInterval = 5 * time.Second

// Pause pauses the pools that the entries select, before the upgrade commences. It starts once none
// of them is paused by a user, and is done when the cache shows all marks. A pool that an earlier
// upgrade left paused gets a mark of this upgrade.
func (d Delayed) Pause() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if len(d.Entries) == 0 {
			return engine.Skip(maintenance.ReasonNoDelayedPools, "no machine config pool needs to be delayed"), nil
		}
		selected, result, err := d.validPools(ctx)
		if err != nil || !result.IsZero() {
			return result, err
		}
		if expired := d.expired(selected, run.Now); expired != "" {
			return engine.Fail(ReasonUnpausingPoolsExpired, "%s", expired), nil
		}
		if users := names(selected, func(p delayedPool) bool { return p.Paused && !p.Delayed() }); len(users) > 0 {
			return engine.Wait(reasonPoolPaused, "machine config pools paused: %s; set spec.paused of the MachineConfigPool to false, so that the upgrade can delay it", text.JoinNames(users)), nil
		}
		return d.pauseAll(ctx, selected)
	}
}

// PauseAdded pauses pools that the entries have selected since Pause was done, because they were
// created or labeled before the upgrade commenced. It skips pools whose release is due, because
// they may already have been released, and pools that a user has unpaused. It fails once the
// release window of a pool has ended, because the upgrade would leave the pool paused.
func (d Delayed) PauseAdded() engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		selected, result, err := d.validPools(ctx)
		if err != nil || !result.IsZero() {
			return result, err
		}
		if expired := d.expired(selected, run.Now); expired != "" {
			return engine.Fail(ReasonUnpausingPoolsExpired, "%s", expired), nil
		}
		added := slices.DeleteFunc(selected, func(p delayedPool) bool {
			return p.Paused || p.ours || !run.Now.Before(d.mark(p.selected).ReleaseAfter)
		})
		if len(added) == 0 {
			return engine.Done("no new machine config pool needs to be delayed"), nil
		}
		return d.pauseAll(ctx, added)
	}
}

// expired names the pools that can no longer be updated in their release window; "" if all can. A
// pool that a user has unpaused is updated at once.
func (d Delayed) expired(selected []delayedPool, now time.Time) string {
	late := names(selected, func(p delayedPool) bool {
		return (!p.ours || p.Paused) && !now.Before(clusterstate.ReleaseEnd(d.mark(p.selected)))
	})
	if len(late) == 0 {
		return ""
	}
	return "machine config pools can no longer be updated in their windows: " + text.JoinNames(late) + "; delayMax has passed"
}

// Advise waits if, with the current pools, the entries would have no effect or the upgrade would
// fail. The pools may still change before the upgrade starts.
func (d Delayed) Advise(ctx context.Context, now time.Time) (engine.Result, error) {
	const valid = "the entries are valid"
	if len(d.Entries) == 0 {
		return engine.Done(valid), nil
	}
	selected, result, err := d.validPools(ctx)
	if err != nil || !result.IsZero() {
		return result, err
	}
	for i := range d.Entries {
		if !slices.ContainsFunc(selected, func(p delayedPool) bool { return p.selected == &d.Entries[i] }) {
			return engine.Wait(ReasonNoPoolSelected, "%s[%d] selects no machine config pool, so the nodes that it should delay are updated right after the control plane", d.Source, i), nil
		}
	}
	if expired := d.expired(selected, now); expired != "" {
		return engine.Wait(ReasonInvalidPools, "%s", expired), nil
	}
	return engine.Done(valid), nil
}

// validPools returns the pools that the entries select. If an entry is invalid, it returns a
// failure as the result of the step.
func (d Delayed) validPools(ctx context.Context) ([]delayedPool, engine.Result, error) {
	problem, err := d.Validate(ctx)
	switch {
	case err != nil:
		return nil, engine.Result{}, err
	case problem != "":
		return nil, engine.Fail(ReasonInvalidPools, "%s", problem), nil
	}
	selected, err := d.selectedPools(ctx)
	return selected, engine.Result{}, err
}

func (d Delayed) pauseAll(ctx context.Context, selected []delayedPool) (engine.Result, error) {
	var errs []error
	var paused, requested []string
	for _, p := range selected {
		want := d.mark(p.selected)
		switch {
		case p.ours && !p.Paused: // a user has since unpaused it for good
			continue
		case p.Paused && p.Mark.String() == want.String():
			paused = append(paused, p.Name)
			continue
		}
		requested = append(requested, p.Name)
		_, err := pause(ctx, d.Client, p.Pool, want)
		errs = append(errs, err)
	}
	switch result, err := pausing(requested, errs); {
	case err != nil || !result.IsZero():
		return result, err
	case len(paused) == 0:
		return engine.Done("no machine config pool needs to be delayed: %s selects none", d.Source), nil
	}
	return engine.Done("machine config pools paused: %s", text.JoinNames(paused)), nil
}

// pausing returns a result that waits for the requested pauses; the zero Result if none was
// requested.
func pausing(requested []string, errs []error) (engine.Result, error) {
	err := errors.Join(errs...)
	if err != nil || len(requested) == 0 {
		return engine.Result{}, err
	}
	return engine.WaitFor(retryInterval, reasonPausing, "pausing machine config pools: %s", text.JoinNames(requested)), nil
}

// selectedPools returns the pools that the entries select, with their current marks.
func (d Delayed) selectedPools(ctx context.Context) ([]delayedPool, error) {
	all, err := clusterstate.ListPools(ctx, d.Client)
	if err != nil {
		return nil, err
	}
	var selected []delayedPool
	for _, pool := range all {
		entry, err := d.selecting(pool)
		if err != nil {
			return nil, err
		}
		if entry != nil {
			selected = append(selected, delayedPool{Pool: pool, selected: entry, ours: d.owns(pool)})
		}
	}
	return selected, nil
}

// names returns the names of the pools that satisfy a condition.
func names(pools []delayedPool, is func(delayedPool) bool) []string {
	var some []string
	for _, p := range pools {
		if is(p) {
			some = append(some, p.Name)
		}
	}
	return some
}

// PauseOnFailure pauses the pools that a selector selects if the upgrade fails after it commenced.
// Only a user unpauses them. This includes pools that are already paused and that the operator was
// going to unpause, but not pools that a user paused. A nil selector selects none. source is the
// name of the selector in messages.
func PauseOnFailure(c client.Writer, live client.Reader, owner maintenance.Owner, source string, selector *maintenancev1beta1.LabelSelector) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		switch {
		case selector == nil:
			return engine.Skip(maintenance.ReasonNoDelayedPools, "no machine config pool needs to be paused after a failure"), nil
		case !run.Committed:
			return engine.Skip("NotCommenced", "the upgrade had not commenced, so no machine config pool is paused"), nil
		}
		matches, err := metav1.LabelSelectorAsSelector((*metav1.LabelSelector)(selector))
		if err != nil {
			return engine.Fail(ReasonInvalidPools, "%s is not a valid selector: %s", source, text.Excerpt(err.Error())), nil
		}
		if matches.Empty() {
			return engine.Fail(ReasonInvalidPools, "%s would pause every machine config pool", source), nil
		}
		all, err := clusterstate.ListPools(ctx, live)
		if err != nil {
			return engine.Result{}, err
		}
		var errs []error
		var kept, requested []string
		for _, pool := range all {
			switch {
			case !matches.Matches(labels.Set(pool.Labels)):
				continue
			case pool.Paused && !pool.Delayed():
				kept = append(kept, pool.Name)
				continue
			}
			requested = append(requested, pool.Name)
			_, err := pause(ctx, c, pool, keptMark(owner, run.Now))
			errs = append(errs, err)
		}
		switch result, err := pausing(requested, errs); {
		case err != nil || !result.IsZero():
			return result, err
		case len(kept) == 0:
			return engine.Done("%s selects no machine config pool", source), nil
		}
		return engine.Done("machine config pools paused until a user sets their spec.paused to false: %s", text.JoinNames(kept)), nil
	}
}
