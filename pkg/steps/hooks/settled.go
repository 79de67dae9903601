// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// Settled reports whether an event has passed for each pool where it has begun: its hooks have
// ended, and none with the policy Abort has failed. It only reads the cache.
func (r *Runner) Settled(ctx context.Context, owner maintenance.Owner, record history.Record, name maintenancev1beta1.HookEvent) (bool, error) {
	e := &eventRun{Runner: r, owner: owner, record: record, event: Event{Name: name}}
	runs, err := e.begun(ctx)
	if err != nil {
		return false, err
	}
	for _, run := range runs {
		if !run.item.Ended() || run.item.Status == statusFailed && run.abort {
			return false, nil
		}
	}
	return true, nil
}

// Items returns the current items of an event for each pool where it has begun. If all hooks of a
// pool have ended, it returns the recorded items. It reads the cache. It also publishes and counts
// the end of Jobs since the last call of the event's step, because that step is not called again.
func (r *Runner) Items(ctx context.Context, owner maintenance.Owner, record history.Record, name maintenancev1beta1.HookEvent) ([]history.StepItem, error) {
	e := &eventRun{Runner: r, owner: owner, record: record, event: Event{Name: name}}
	runs, err := e.begun(ctx)
	items := make([]history.StepItem, 0, len(runs))
	for _, run := range runs {
		if run.job != nil && run.item.Ended() && !e.known(run.item.Name).Ended() {
			e.report(ctx, run.Name, run.item)
		}
		items = append(items, run.item)
	}
	return items, err
}

// begun returns the current hooks of an event, for each pool where it has begun and is not recorded
// as completed.
func (e *eventRun) begun(ctx context.Context) ([]hookRun, error) {
	pools, err := e.begunPools(ctx)
	if err != nil {
		return nil, err
	}
	var all []hookRun
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		e.event.Pool = pool
		if e.known(e.event.key()).Status == statusCompleted {
			continue
		}
		runs, err := e.cached(ctx)
		if err != nil {
			return nil, err
		}
		for _, run := range sorted(runs) {
			if run.item.Status == statusRunning && run.job != nil && (finishedCondition(run.job) != nil || run.job.DeletionTimestamp != nil) {
				e.inspect(ctx, &run)
			}
			all = append(all, run)
		}
	}
	return all, nil
}

// begunPools returns the pools where the event has begun, according to the record or a Job. The
// name is empty if the event is not about pools.
func (e *eventRun) begunPools(ctx context.Context) (map[string]bool, error) {
	var list batchv1.JobList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.owner.Namespace), client.MatchingLabels(e.jobLabels())); err != nil {
		return nil, fmt.Errorf("listing the Jobs of event %s: %w", e.event.Name, err)
	}
	pools := map[string]bool{}
	begun := func(key string) {
		event, rest, _ := strings.Cut(key, "/")
		pool, _, _ := strings.Cut(rest, "/")
		switch {
		case event != string(e.event.Name):
		case e.event.isOfPool():
			pools[pool] = true
		default:
			pools[""] = true
		}
	}
	for i := range list.Items {
		begun(list.Items[i].Annotations[annotationEvent])
	}
	for i := range e.record.Conditions {
		for _, item := range e.record.Conditions[i].Items {
			begun(item.Name)
		}
	}
	return pools, nil
}

// isOfPool reports whether the event is about a machine config pool.
func (e Event) isOfPool() bool {
	return e.Name == maintenancev1beta1.EventMachineConfigPoolUnpause || e.Name == maintenancev1beta1.EventMachineConfigPoolUpdated
}
