// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxHooks is the number of hooks that run on one event: their results must fit into a step.
const maxHooks = 48

// candidates returns the hooks of the event in the cache, sorted by name, whether they select the
// UpgradeJob or not.
func (e *eventRun) candidates(ctx context.Context) ([]hookRef, error) {
	var list v1beta1.UpgradeJobHookList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.job.Namespace)); err != nil {
		return nil, fmt.Errorf("listing UpgradeJobHooks: %w", err)
	}
	var found []hookRef
	for i := range list.Items {
		if slices.Contains(list.Items[i].Spec.Events, e.event.Name) {
			found = append(found, hookRef{list.Items[i].Name, list.Items[i].UID})
		}
	}
	slices.SortFunc(found, func(a, b hookRef) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// begin selects the hooks of the event, claims those that run once, and creates the Jobs.
func (e *eventRun) begin(ctx context.Context, candidates []hookRef) ([]hookRun, error) {
	upgrade, err := e.upgrade(ctx)
	if err != nil {
		return nil, err
	}
	var selected []*v1beta1.UpgradeJobHook
	var all []hookRef
	for _, candidate := range candidates {
		hook, err := e.selectHook(ctx, candidate.Name, upgrade)
		if err != nil {
			return nil, err
		}
		if hook != nil {
			selected, all = append(selected, hook), append(all, hookRef{hook.Name, hook.UID})
		}
	}
	hooks := make([]hookRun, 0, len(selected))
	for i, hook := range selected {
		run := hookRun{hookRef: all[i], item: history.StepItem{Name: e.event.itemName(hook.Name)}}
		if err := e.create(ctx, &run, upgrade, hook, all); err != nil {
			return nil, err
		}
		hooks = append(hooks, run)
	}
	return hooks, nil
}

// maxClaims is how often a hook is read again because it has changed before it could be claimed.
const maxClaims = 3

// selectHook returns the hook if it runs on the event of the UpgradeJob, claimed if it runs once;
// nil means that it does not.
func (e *eventRun) selectHook(ctx context.Context, name string, upgrade *v1beta1.UpgradeJob) (*v1beta1.UpgradeJobHook, error) {
	for attempt := 1; ; attempt++ {
		hook, err := e.liveHook(ctx, name)
		if err != nil || hook == nil || !e.selects(hook, upgrade) {
			return nil, err
		}
		claimed, err := e.claim(ctx, hook)
		switch {
		case apierrors.IsConflict(err) && attempt < maxClaims:
			continue
		case err != nil || !claimed:
			return nil, err
		}
		return hook, nil
	}
}

// upgrade returns the UpgradeJob as the API server has it: hooks get all of it.
func (e *eventRun) upgrade(ctx context.Context) (*v1beta1.UpgradeJob, error) {
	var upgrade v1beta1.UpgradeJob
	if err := e.Live.Get(ctx, client.ObjectKeyFromObject(e.job), &upgrade); err != nil {
		return nil, fmt.Errorf("getting UpgradeJob %s for its hooks: %w", e.job.Name, err)
	}
	if upgrade.UID != e.job.UID {
		return nil, fmt.Errorf("getting UpgradeJob %s for its hooks: it was replaced by another one", e.job.Name)
	}
	return &upgrade, nil
}

// liveHook returns the hook as the API server has it; nil means that there is none.
func (e *eventRun) liveHook(ctx context.Context, name string) (*v1beta1.UpgradeJobHook, error) {
	var hook v1beta1.UpgradeJobHook
	err := e.Live.Get(ctx, client.ObjectKey{Namespace: e.job.Namespace, Name: name}, &hook)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting UpgradeJobHook %s: %w", name, err)
	case hook.DeletionTimestamp != nil:
		return nil, nil
	}
	return &hook, nil
}

// selects reports whether a hook runs on the event of the UpgradeJob.
func (e *eventRun) selects(hook *v1beta1.UpgradeJobHook, upgrade *v1beta1.UpgradeJob) bool {
	selector, err := selectorOf(hook)
	return err == nil && slices.Contains(hook.Spec.Events, e.event.Name) && selector.Matches(labels.Set(upgrade.Labels))
}

// selectorOf returns the selector of a hook. An invalid one, which the condition Accepted reports,
// selects nothing.
func selectorOf(hook *v1beta1.UpgradeJobHook) (labels.Selector, error) {
	if hook.Spec.Selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector((*metav1.LabelSelector)(hook.Spec.Selector))
}

// claim reports whether a hook runs for this UpgradeJob. One with run: Next runs for the first that
// claims it. The claim fails if the hook has changed since it was read.
func (e *eventRun) claim(ctx context.Context, hook *v1beta1.UpgradeJobHook) (bool, error) {
	if hook.Spec.Run != v1beta1.HookRunNext {
		return true, nil
	}
	if by := hook.Status.ClaimedBy; by != nil && by.UID != "" {
		return by.UID == string(e.job.UID), nil
	}
	before := hook.DeepCopy()
	hook.Status.ClaimedBy = &v1beta1.UpgradeJobReference{Name: e.job.Name, UID: string(e.job.UID)}
	if err := e.Client.Status().Patch(ctx, hook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("claiming UpgradeJobHook %s: %w", hook.Name, err)
	}
	return true, nil
}

const messageRemoved = "the UpgradeJobHook was deleted before its Job was created"

// createMissing creates the Job of a hook that an earlier process has selected.
func (e *eventRun) createMissing(ctx context.Context, run *hookRun, all []hookRef) error {
	hook, err := e.liveHook(ctx, run.Name)
	if err != nil {
		return err
	}
	if hook == nil || hook.UID != run.UID {
		run.item.Status, run.item.Message = statusRemoved, messageRemoved
		return nil
	}
	upgrade, err := e.upgrade(ctx)
	if err != nil {
		return err
	}
	return e.create(ctx, run, upgrade, hook, all)
}

// create creates the Job of a hook. The item becomes that of the created Job, or that of a hook that
// cannot run. An error means that this is to be tried again.
func (e *eventRun) create(ctx context.Context, run *hookRun, upgrade *v1beta1.UpgradeJob, hook *v1beta1.UpgradeJobHook, all []hookRef) error {
	run.abort = hook.Spec.FailurePolicy == v1beta1.HookFailureAbort
	if ended := e.observed(run.item.Name); ended.Ended() {
		run.item = ended
		return nil
	}
	if slices.Index(all, run.hookRef) >= maxHooks {
		run.fail("TooManyHooks: %d hooks select the event, and at most %d run; combine hooks, or restrict their selectors", len(all), maxHooks)
		return nil
	}
	job, err := e.newJob(upgrade, hook, all)
	invalid := (*invalidError)(nil)
	switch {
	case errors.As(err, &invalid):
		run.fail("%s: %s", invalid.reason, invalid.message)
		return nil
	case errors.Is(err, errEnvironmentTooLarge):
		run.fail("%s: the UpgradeJob has too much JSON even without its annotations and its status; remove labels or health checks from jobTemplate of the UpgradeConfig, or create the UpgradeJob without them", reasonEnvironmentTooLarge)
		return nil
	case err != nil:
		return err
	}
	return e.createJob(ctx, run, job)
}

func (e *eventRun) createJob(ctx context.Context, run *hookRun, job *unstructured.Unstructured) error {
	e.observe(history.StepItem{Name: e.event.key(), Status: statusBegun})
	err := e.Client.Create(ctx, job, client.FieldValidation(metav1.FieldValidationStrict))
	switch {
	case apierrors.IsAlreadyExists(err):
		return e.adopt(ctx, run, job.GetName())
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		run.fail("%s: the API server rejects the Job; correct spec.template of UpgradeJobHook %s: %s", ReasonInvalidTemplate, run.Name, text.Reason(err.Error()))
		return nil
	case apierrors.IsForbidden(err):
		run.fail("Forbidden: the Job must not be created; change the quota, policy, or role that the API server names: %s", text.Reason(err.Error()))
		return nil
	case err != nil:
		return fmt.Errorf("creating the Job of hook %s: %w", run.Name, err)
	}
	run.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: job.GetName(), Namespace: job.GetNamespace(), UID: job.GetUID(), CreationTimestamp: job.GetCreationTimestamp(),
	}}
	run.item = running(run.item.Name, job.GetName())
	return nil
}

// adopt uses the Job that exists under the name of a hook's Job: an earlier call has created it.
func (e *eventRun) adopt(ctx context.Context, run *hookRun, name string) error {
	var job batchv1.Job
	if err := e.Live.Get(ctx, client.ObjectKey{Namespace: e.job.Namespace, Name: name}, &job); err != nil {
		return fmt.Errorf("getting Job %s: %w", name, err)
	}
	if !e.isOurs(&job) {
		run.fail("JobExists: Job %s exists and was not created by the operator; delete it before the next upgrade", name)
		return nil
	}
	run.job, run.item = &job, running(run.item.Name, name)
	return nil
}

func (h *hookRun) fail(format string, args ...any) {
	h.item.Status, h.item.Message = statusFailed, fmt.Sprintf(format, args...)
}
