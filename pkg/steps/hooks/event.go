// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// eventRun is one call of the step for an event.
type eventRun struct {
	*Runner

	owner  maintenance.Owner
	record history.Record
	event  Event
	run    engine.Run
}

// hookRun is the state of one hook of the event.
type hookRun struct {
	hookRef

	item  history.StepItem
	job   *batchv1.Job // nil if there is none
	abort bool         // its failure aborts the upgrade
}

// step runs the hooks of the event.
func (e *eventRun) step(ctx context.Context) (engine.Result, error) {
	if ended := e.known(e.event.key()); ended.Status == statusCompleted {
		return engine.Done("%s", ended.Message).WithItems(ended), nil
	}
	hooks, err := e.hooks(ctx)
	switch {
	case err == nil:
	case !e.overdue() || errors.Is(err, context.Canceled):
		return engine.Result{}, err
	default:
		hooks = e.endOverdue(ctx, err)
	}
	if len(hooks) == 0 {
		e.observe(history.StepItem{Name: e.event.key(), Status: statusNoHooks})
		return engine.Skip(maintenance.ReasonNoHooks, "no hook selects event %s", e.event.key()), nil
	}
	for i := range hooks {
		h := &hooks[i]
		if h.item.Status == statusRunning && h.job != nil {
			e.inspect(ctx, h)
		}
		if h.item.Ended() && !e.known(h.item.Name).Ended() {
			e.report(ctx, h.Name, h.item)
		}
	}
	return e.result(hooks), nil
}

// known returns the final item of that name from the record or from this process; the zero item if
// neither has it.
func (e *eventRun) known(name string) history.StepItem {
	for i := range e.record.Conditions {
		for _, item := range e.record.Conditions[i].Items {
			if item.Name == name && item.Ended() {
				return item
			}
		}
	}
	return e.observed(name)
}

// recorded returns the items of the event's hooks in the record. A hook belongs to the event once
// it is recorded.
func (e *eventRun) recorded() map[string]history.StepItem {
	items := map[string]history.StepItem{}
	for i := range e.record.Conditions {
		for _, item := range e.record.Conditions[i].Items {
			if hook, ok := strings.CutPrefix(item.Name, e.event.key()+"/"); ok && hook != "" {
				items[item.Name] = item
			}
		}
	}
	return items
}

// hooks returns the hooks of the event, sorted by name. The first call selects them and creates
// their Jobs. Later calls find the selected hooks in the record or in the Jobs.
func (e *eventRun) hooks(ctx context.Context) ([]hookRun, error) {
	recorded := e.recorded()
	jobs, err := e.listJobs(ctx, e.Client)
	if err != nil {
		return nil, err
	}
	if len(recorded) > 0 || len(jobs) > 0 {
		return e.resume(ctx, recorded, jobs)
	}
	began := e.observed(e.event.key()).Status
	if began == statusNoHooks {
		return nil, nil
	}
	candidates, err := e.candidates(ctx)
	if err != nil || len(candidates) == 0 && began == "" {
		return nil, err
	}
	if jobs, err = e.listJobs(ctx, e.Live); err != nil {
		return nil, err
	}
	if len(jobs) > 0 { // an earlier call created them and was not recorded
		return e.resume(ctx, recorded, jobs)
	}
	return e.begin(ctx, candidates)
}

// listJobs returns the Jobs of the event by item name.
func (e *eventRun) listJobs(ctx context.Context, from client.Reader) (map[string]*batchv1.Job, error) {
	var list batchv1.JobList
	if err := from.List(ctx, &list, client.InNamespace(e.owner.Namespace), client.MatchingLabels(e.jobLabels())); err != nil {
		return nil, fmt.Errorf("listing the Jobs of event %s: %w", e.event.key(), err)
	}
	jobs := map[string]*batchv1.Job{}
	for i := range list.Items {
		if job := &list.Items[i]; e.isOurs(job) {
			jobs[job.Annotations[annotationItem]] = job
		}
	}
	return jobs, nil
}

// resume returns the hooks that were selected when the event began. It creates Jobs that are
// missing because the process ended.
func (e *eventRun) resume(ctx context.Context, recorded map[string]history.StepItem, jobs map[string]*batchv1.Job) ([]hookRun, error) {
	runs, all := e.selected(recorded, jobs)
	if err := e.findJobs(ctx, runs, jobs); err != nil {
		return nil, err
	}
	for _, run := range runs {
		if run.item.Status == "" { // selected, but not yet recorded or created
			if err := e.createMissing(ctx, run, all); err != nil {
				return nil, err
			}
		}
	}
	return sorted(runs), nil
}

// selected returns the hooks in the record and the Jobs, by item name, and the list of all hooks
// that were selected when the first Job was created.
func (e *eventRun) selected(recorded map[string]history.StepItem, jobs map[string]*batchv1.Job) (map[string]*hookRun, []hookRef) {
	runs := map[string]*hookRun{}
	for name, item := range recorded {
		runs[name] = &hookRun{hookRef: hookRef{Name: strings.TrimPrefix(name, e.event.key()+"/")}, item: item}
	}
	var all []hookRef
	for _, job := range jobs {
		all = selection(job)
		for _, hook := range all {
			name := e.event.itemName(hook.Name)
			if runs[name] == nil {
				runs[name] = &hookRun{item: history.StepItem{Name: name}}
			}
			runs[name].hookRef = hook
		}
	}
	return runs, all
}

func sorted(runs map[string]*hookRun) []hookRun {
	var hooks []hookRun
	for _, run := range runs {
		hooks = append(hooks, *run)
	}
	slices.SortFunc(hooks, func(a, b hookRun) int { return cmp.Compare(a.item.Name, b.item.Name) })
	return hooks
}

// findJobs finds the Jobs of the hooks, and the outcome of hooks without a Job. It asks the API
// server before it treats a Job as missing, because the cache may be stale.
func (e *eventRun) findJobs(ctx context.Context, runs map[string]*hookRun, jobs map[string]*batchv1.Job) error {
	var live map[string]*batchv1.Job
	for name, run := range runs {
		if run.job = jobs[name]; run.job == nil && run.item.Status == statusRunning {
			if live == nil {
				var err error
				if live, err = e.listJobs(ctx, e.Live); err != nil {
					return err
				}
			}
			run.job = live[name]
		}
		recorded := run.item
		switch ended := e.known(name); {
		case ended.Ended():
			run.item = ended
		case run.job != nil:
			run.item = running(name, run.job.Name)
		case run.item.Status == statusRunning:
			run.item.Status, run.item.Message = statusFailed, "its Job was removed with its finalizer before its result was recorded; it is not run again"
		}
		switch {
		case run.job != nil:
			run.abort = run.job.Annotations[annotationPolicy] != string(maintenancev1beta1.HookFailureIgnore)
		case run.item.Status == statusFailed && !recorded.Ended(): // with Abort, the step would have failed when this was recorded
			run.abort = e.abortsNow(ctx, run.Name)
		}
	}
	return nil
}

// abortsNow reports whether a hook whose Job is gone has the policy Abort. If the hook is also
// gone, its policy is unknown, and abortsNow returns true.
func (e *eventRun) abortsNow(ctx context.Context, hook string) bool {
	current, err := e.cachedHook(ctx, hook)
	return err != nil || current.Spec.FailurePolicy == maintenancev1beta1.HookFailureAbort
}

// cachedHook returns a hook from the cache.
func (e *eventRun) cachedHook(ctx context.Context, name string) (maintenancev1beta1.UpgradeJobHook, error) {
	var hook maintenancev1beta1.UpgradeJobHook
	err := e.Client.Get(ctx, client.ObjectKey{Namespace: e.owner.Namespace, Name: name}, &hook)
	return hook, err
}

func running(item, job string) history.StepItem {
	return history.StepItem{Name: item, Status: statusRunning, Message: "Job " + job}
}

// abortCounts reports whether a failed hook can still abort the upgrade. It cannot once the outcome
// is decided, for example when pools are released after a failure.
func (e *eventRun) abortCounts() bool { return e.run.Outcome == "" }

// bounded reports whether hooks.timeout limits the wait for the hooks of the event. For other
// events, the window or the pools do.
func (e *eventRun) bounded() bool {
	return e.event.Pool == "" && (e.event.Name == maintenancev1beta1.EventUpgradeComplete || !e.abortCounts())
}

// deadline returns when unfinished hooks of the event count as failed; zero if they never do.
func (e *eventRun) deadline() time.Time {
	if !e.bounded() {
		return time.Time{}
	}
	return e.run.Since.Add(e.Config().Timeout.Duration)
}

// overdue reports whether the deadline has passed.
func (e *eventRun) overdue() bool {
	deadline := e.deadline()
	return !deadline.IsZero() && !e.run.Now.Before(deadline)
}

// result returns the result of the step.
func (e *eventRun) result(hooks []hookRun) engine.Result {
	items := make([]history.StepItem, 0, len(hooks))
	var waiting, failed []string
	for i := range hooks {
		h := &hooks[i]
		items = append(items, h.item)
		switch {
		case h.item.Status == statusRunning:
			waiting = append(waiting, h.Name+" ("+h.item.Message+")")
		case h.item.Status == statusFailed && h.abort && e.abortCounts():
			return engine.Fail(maintenance.ReasonHookFailed, "hook %s failed: %s", h.item.Name, h.item.Message).WithItems(itemsOf(hooks)...)
		case h.item.Status == statusFailed:
			failed = append(failed, h.Name+" ("+h.item.Message+")")
		}
	}
	if len(waiting) > 0 {
		return e.wait(hooks, "waiting for %d of %s: %s", len(waiting), text.Plural(len(hooks), "hook", "hooks"), text.JoinNames(waiting)).WithItems(items...)
	}
	message := text.Plural(len(hooks)-len(failed), "hook", "hooks") + " completed"
	if len(failed) > 0 {
		message = fmt.Sprintf("%s, %d failed and ignored: %s", message, len(failed), text.JoinNames(failed))
	}
	if e.event.Pool != "" { // a single item per event, so the items of many pools fit into the record
		ended := history.StepItem{Name: e.event.key(), Status: statusCompleted, Message: message}
		e.observe(ended)
		items = []history.StepItem{ended}
	}
	return engine.Done("%s", message).WithItems(items...)
}

func itemsOf(hooks []hookRun) []history.StepItem {
	items := make([]history.StepItem, 0, len(hooks))
	for i := range hooks {
		items = append(items, hooks[i].item)
	}
	return items
}

// wait waits for a change of a Job, for the deadline, or for the next inspection of pods that are
// not running.
func (e *eventRun) wait(hooks []hookRun, format string, args ...any) engine.Result {
	var after time.Duration
	if deadline := e.deadline(); !deadline.IsZero() {
		after = deadline.Sub(e.run.Now)
	}
	notReady := slices.ContainsFunc(hooks, func(h hookRun) bool { return h.item.Status == statusRunning && !isReady(h.job) })
	if notReady && (after == 0 || after > podInterval) {
		after = podInterval
	}
	if after == 0 {
		return engine.Wait("HooksRunning", format, args...)
	}
	return engine.WaitFor(after, "HooksRunning", format, args...)
}
