// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// Settled reports whether an event has passed for all pools for which it has begun: its hooks have
// ended, and none has failed with the policy Abort. It is read-only, and reads the cache.
func (r *Runner) Settled(ctx context.Context, job *v1beta1.UpgradeJob, record history.Record, name v1beta1.HookEvent) (bool, error) {
	e := &eventRun{Runner: r, job: job, record: record, event: Event{Name: name}}
	pools, err := e.begunPools(ctx)
	if err != nil {
		return false, err
	}
	for pool := range pools {
		e.event.Pool = pool
		if e.known(e.event.key()).Status == statusCompleted {
			continue
		}
		runs, err := e.cached(ctx)
		if err != nil {
			return false, err
		}
		for _, run := range runs {
			if run.item.Status == statusRunning && run.job != nil && (finishedCondition(run.job) != nil || run.job.DeletionTimestamp != nil) {
				e.inspect(ctx, run)
			}
			if !run.item.Ended() || run.item.Status == statusFailed && run.abort {
				return false, nil
			}
		}
	}
	return true, nil
}

// begunPools returns the pools for which the record or a Job shows that the event has begun.
func (e *eventRun) begunPools(ctx context.Context) (map[string]bool, error) {
	var list batchv1.JobList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.job.Namespace), client.MatchingLabels(e.jobLabels())); err != nil {
		return nil, fmt.Errorf("listing the Jobs of event %s: %w", e.event.Name, err)
	}
	pools := map[string]bool{}
	begun := func(key string) {
		if rest, ok := strings.CutPrefix(key, string(e.event.Name)+"/"); ok {
			pool, _, _ := strings.Cut(rest, "/")
			pools[pool] = true
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
