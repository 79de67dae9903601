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
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxHooks is the maximum number of hooks for one event, because their results must fit into a
// step.
const maxHooks = 48

// candidates returns the cached hooks for the event and the kind of the upgrade, sorted by name.
// They need not select the upgrade.
func (e *eventRun) candidates(ctx context.Context) ([]hookRef, error) {
	var list maintenancev1beta1.UpgradeJobHookList
	if err := e.Client.List(ctx, &list, client.InNamespace(e.owner.Namespace)); err != nil {
		return nil, fmt.Errorf("listing UpgradeJobHooks: %w", err)
	}
	var found []hookRef
	for i := range list.Items {
		if slices.Contains(list.Items[i].Spec.Events, e.event.Name) && runsFor(&list.Items[i], e.owner.Kind) {
			found = append(found, hookRef{list.Items[i].Name, list.Items[i].UID})
		}
	}
	slices.SortFunc(found, func(a, b hookRef) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// begin selects the hooks for the event, claims those that run once, and creates the Jobs.
func (e *eventRun) begin(ctx context.Context, candidates []hookRef) ([]hookRun, error) {
	upgrade, err := e.upgrade(ctx)
	if err != nil {
		return nil, err
	}
	var selected []selectedHook
	var all []hookRef
	for _, candidate := range candidates {
		hook, err := e.selectHook(ctx, candidate.Name, upgrade)
		if err != nil {
			return nil, err
		}
		if hook.hook != nil {
			selected, all = append(selected, hook), append(all, hookRef{hook.hook.Name, hook.hook.UID})
		}
	}
	hooks := make([]hookRun, 0, len(selected))
	for i, hook := range selected {
		run := hookRun{hookRef: all[i], item: history.StepItem{Name: e.event.itemName(all[i].Name)}}
		if err := e.create(ctx, &run, upgrade, hook.hook, all); err != nil {
			return nil, err
		}
		if hook.claimedNow && run.job == nil && run.item.Status == statusFailed {
			if err := e.unclaim(ctx, all[i]); err != nil {
				return nil, err
			}
		}
		hooks = append(hooks, run)
	}
	return hooks, nil
}

// selectedHook is a hook that runs for the event.
type selectedHook struct {
	hook       *maintenancev1beta1.UpgradeJobHook // nil if no hook runs
	claimedNow bool                               // the upgrade claimed it for this event
}

// maxClaims is the number of attempts to claim a hook that keeps changing.
const maxClaims = 3

// selectHook returns the hook if it runs for the event of the upgrade, and claims it if it runs
// only once. It returns the zero selectedHook if the hook does not run.
func (e *eventRun) selectHook(ctx context.Context, name string, upgrade client.Object) (selectedHook, error) {
	for attempt := 1; ; attempt++ {
		hook, err := e.liveHook(ctx, name)
		if err != nil || hook == nil || !e.selects(hook, upgrade.GetLabels()) {
			return selectedHook{}, err
		}
		claims := hook.Spec.Run == maintenancev1beta1.HookRunNext && !isClaimed(hook)
		claimed, err := e.claim(ctx, hook)
		switch {
		case apierrors.IsConflict(err) && attempt < maxClaims:
			continue
		case err != nil || !claimed:
			return selectedHook{}, err
		}
		return selectedHook{hook: hook, claimedNow: claims}, nil
	}
}

func isClaimed(hook *maintenancev1beta1.UpgradeJobHook) bool {
	return hook.Status.ClaimedBy != nil && hook.Status.ClaimedBy.UID != ""
}

// upgrade returns the upgrade object from the API server, because hooks get the complete object.
func (e *eventRun) upgrade(ctx context.Context) (client.Object, error) {
	upgrade := e.owner.New()
	if err := e.Live.Get(ctx, client.ObjectKey{Namespace: e.owner.Namespace, Name: e.owner.Name}, upgrade); err != nil {
		return nil, fmt.Errorf("getting %s %s for its hooks: %w", e.owner.Kind, e.owner.Name, err)
	}
	if upgrade.GetUID() != e.owner.UID {
		return nil, fmt.Errorf("getting %s %s for its hooks: it was replaced by another one", e.owner.Kind, e.owner.Name)
	}
	return upgrade, nil
}

// liveHook returns the hook from the API server, or nil if there is none.
func (e *eventRun) liveHook(ctx context.Context, name string) (*maintenancev1beta1.UpgradeJobHook, error) {
	var hook maintenancev1beta1.UpgradeJobHook
	err := e.Live.Get(ctx, client.ObjectKey{Namespace: e.owner.Namespace, Name: name}, &hook)
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

// selects reports whether a hook runs for the event of an upgrade with these labels. A hook whose
// spec cannot be decoded does not run.
func (e *eventRun) selects(hook *maintenancev1beta1.UpgradeJobHook, of map[string]string) bool {
	selector, err := selectorOf(hook)
	return err == nil && hook.SpecProblem() == "" && slices.Contains(hook.Spec.Events, e.event.Name) && runsFor(hook, e.owner.Kind) &&
		selector.Matches(labels.Set(of))
}

// runsFor reports whether a hook runs for upgrades of a kind.
func runsFor(hook *maintenancev1beta1.UpgradeJobHook, kind string) bool {
	kinds := hook.Spec.Kinds
	if len(kinds) == 0 {
		kinds = []maintenancev1beta1.HookKind{maintenancev1beta1.HookKindUpgradeJob}
	}
	return slices.Contains(kinds, maintenancev1beta1.HookKind(kind))
}

// selectorOf returns the selector of a hook. An invalid selector selects nothing; the condition
// Accepted reports it.
func selectorOf(hook *maintenancev1beta1.UpgradeJobHook) (labels.Selector, error) {
	if hook.Spec.Selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector((*metav1.LabelSelector)(hook.Spec.Selector))
}

// claim reports whether a hook runs for this upgrade. A hook with run: Next runs for the first
// upgrade that claims it. The claim fails if the hook has changed since it was read.
func (e *eventRun) claim(ctx context.Context, hook *maintenancev1beta1.UpgradeJobHook) (bool, error) {
	if hook.Spec.Run != maintenancev1beta1.HookRunNext {
		return true, nil
	}
	switch {
	case isClaimed(hook):
		return e.isClaimant(hook), nil
	case e.leavesToNext(hook):
		return false, nil
	}
	before := hook.DeepCopy()
	hook.Status.ClaimedBy = &maintenancev1beta1.HookClaim{Name: e.owner.Name, UID: string(e.owner.UID), Version: e.owner.Version}
	if e.owner.Kind != string(maintenancev1beta1.HookKindUpgradeJob) {
		hook.Status.ClaimedBy.Kind = maintenancev1beta1.HookKind(e.owner.Kind)
	}
	if err := e.Client.Status().Patch(ctx, hook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("claiming UpgradeJobHook %s: %w", hook.Name, err)
	}
	return true, nil
}

// isClaimant reports whether this upgrade is the one that claimed the hook.
func (e *eventRun) isClaimant(hook *maintenancev1beta1.UpgradeJobHook) bool {
	return hook.Status.ClaimedBy.UID == string(e.owner.UID) && hook.Status.ClaimedBy.Version == e.owner.Version
}

// leavesToNext reports whether a hook with run: Next stays available for the next upgrade: this
// upgrade was skipped or canceled, and the hook also selects events that do not occur in that case.
func (e *eventRun) leavesToNext(hook *maintenancev1beta1.UpgradeJobHook) bool {
	if e.run.Outcome != engine.OutcomeSkipped && e.run.Outcome != engine.OutcomeCancelled {
		return false
	}
	return slices.ContainsFunc(hook.Spec.Events, func(event maintenancev1beta1.HookEvent) bool {
		return event != maintenancev1beta1.EventSkip && event != maintenancev1beta1.EventFinish
	})
}

// unclaim makes a hook with run: Next available for the next upgrade, because no Job could be
// created for it.
func (e *eventRun) unclaim(ctx context.Context, ref hookRef) error {
	for attempt := 1; ; attempt++ {
		hook, err := e.liveHook(ctx, ref.Name)
		if err != nil || hook == nil || hook.UID != ref.UID || !isClaimed(hook) || !e.isClaimant(hook) {
			return err
		}
		before := hook.DeepCopy()
		hook.Status.ClaimedBy = nil
		err = e.Client.Status().Patch(ctx, hook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) && attempt < maxClaims {
			continue
		}
		if err != nil {
			return fmt.Errorf("leaving UpgradeJobHook %s to the next upgrade: %w", ref.Name, err)
		}
		return nil
	}
}

const messageRemoved = "the UpgradeJobHook was deleted before its Job was created"

// createMissing creates the Job of a hook that an earlier process selected.
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

// create creates the Job of a hook. Afterward, the item describes the Job, or why the hook cannot
// run. If create returns an error, the caller should retry.
func (e *eventRun) create(ctx context.Context, run *hookRun, upgrade client.Object, hook *maintenancev1beta1.UpgradeJobHook, all []hookRef) error {
	run.abort = hook.Spec.FailurePolicy == maintenancev1beta1.HookFailureAbort
	if ended := e.observed(run.item.Name); ended.Ended() {
		run.item = ended
		return nil
	}
	if slices.Index(all, run.hookRef) >= maxHooks {
		run.fail("TooManyHooks: %d hooks select the event, and at most %d run; combine hooks, or restrict their selectors", len(all), maxHooks)
		return nil
	}
	job, err := e.newJob(upgrade, hook, all)
	if err == nil {
		err = e.restrictSecrets(ctx, job)
	}
	invalid := (*invalidError)(nil)
	switch {
	case errors.As(err, &invalid):
		run.fail("%s: %s", invalid.reason, invalid.message)
		return nil
	case errors.Is(err, errEnvironmentTooLarge):
		run.fail("%s: the %s has too much JSON even without its annotations and its status; remove labels or health checks from it, or from jobTemplate if it has one", reasonEnvironmentTooLarge, e.owner.Kind)
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

// adopt takes over an existing Job with the name of a hook's Job, if an earlier call created it.
func (e *eventRun) adopt(ctx context.Context, run *hookRun, name string) error {
	var job batchv1.Job
	if err := e.Live.Get(ctx, client.ObjectKey{Namespace: e.owner.Namespace, Name: name}, &job); err != nil {
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
