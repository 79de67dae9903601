// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// endOverdue returns the hooks of an event that could not be started or observed before its
// deadline because of an error. Each hook without a result has failed. endOverdue only reads the
// cache. If that also fails, the event has failed and aborts, because the failure policies are
// unknown.
func (e *eventRun) endOverdue(ctx context.Context, cause error) []hookRun {
	within := fmt.Sprintf("within hooks.timeout (%s): %s", e.Config().Timeout, text.Reason(cause.Error()))
	runs, err := e.cached(ctx)
	if err != nil {
		event := hookRun{hookRef: hookRef{Name: e.event.key()}, item: history.StepItem{Name: e.event.key()}, abort: true}
		event.fail("its hooks could not be started %s", within)
		return []hookRun{event}
	}
	for _, run := range runs {
		switch {
		case run.item.Status == "":
			run.fail("could not be started %s", within)
		case run.item.Status == statusRunning && run.job == nil:
			run.fail("its Job could not be observed %s", within)
		}
	}
	return sorted(runs)
}

// cached returns the hooks of the event from the record and the cache, by item name. A hook without
// a status was not started, as far as they show.
func (e *eventRun) cached(ctx context.Context) (map[string]*hookRun, error) {
	jobs, err := e.listJobs(ctx, e.Client)
	if err != nil {
		return nil, err
	}
	runs, _ := e.selected(e.recorded(), jobs)
	if len(runs) == 0 {
		if runs, err = e.notBegun(ctx); err != nil {
			return nil, err
		}
	}
	for name, run := range runs {
		recorded := run.item.Ended()
		run.job = jobs[name]
		switch ended := e.known(name); {
		case ended.Ended():
			run.item = ended
		case run.job != nil:
			run.item = running(name, run.job.Name)
		}
		switch {
		case run.job != nil:
			run.abort = run.job.Annotations[annotationPolicy] != string(maintenancev1beta1.HookFailureIgnore)
		case run.item.Status == "" && e.isRemoved(ctx, run.Name):
			run.item.Status, run.item.Message = statusRemoved, messageRemoved
		case !recorded:
			run.abort = e.abortsNow(ctx, run.Name)
		}
	}
	return runs, nil
}

// notBegun returns the cached hooks for an event that has no Jobs yet.
func (e *eventRun) notBegun(ctx context.Context) (map[string]*hookRun, error) {
	var list maintenancev1beta1.UpgradeJobHookList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.owner.Namespace)); err != nil {
		return nil, fmt.Errorf("listing UpgradeJobHooks: %w", err)
	}
	runs := map[string]*hookRun{}
	for i := range list.Items {
		hook := &list.Items[i]
		claimed := hook.Spec.Run == maintenancev1beta1.HookRunNext && isClaimed(hook) && !e.isClaimant(hook)
		if hook.DeletionTimestamp == nil && !claimed && e.selects(hook, e.owner.Labels) {
			name := e.event.itemName(hook.Name)
			runs[name] = &hookRun{hookRef: hookRef{hook.Name, hook.UID}, item: history.StepItem{Name: name}}
		}
	}
	return runs, nil
}

// isRemoved reports whether a hook was deleted, according to the cache.
func (e *eventRun) isRemoved(ctx context.Context, hook string) bool {
	_, err := e.cachedHook(ctx, hook)
	return apierrors.IsNotFound(err)
}
